// What a page left open shows while the demo walks through its faults. The demo's own figures are its
// own verdict (its exit status, at the end).
import assert from "node:assert/strict";
import { test } from "node:test";
import { picture, says } from "./stage.mjs";

export default function walk(stage) {
  const page = () => stage.admin.page;
  const verdict = () => page().locator("#verdict");

  test("a new dependency appears by itself on the page left open, observing", async () => {
    await says(page().locator("#fleet"), /catalog[\s\S]*observing/i, 30);
    await picture(page(), "overview-observing");
  });

  test("the page turns to on by itself when a policy is set, and is live", async () => {
    await stage.demo.line("the policy", /a policy is set/, 60);
    await says(page().locator("#fleet"), /\bon\b/i, 20);
    await says(page().locator("#pill-text"), /live/i, 10);
    await page().goto(`${stage.origin}/dependencies/catalog/get-item`);
    await says(verdict(), /hedging calls slower than/i, 10);
  });

  test("healthy: hedged p99 at most half of the holdout's", async () => {
    const phase = await stage.demo.phase("healthy", 60);
    assert.ok(phase.p99_ms <= phase.p99_holdout_ms / 2, JSON.stringify(phase));
    await picture(page(), "dependency-healthy");
  });

  test("one slow replica is named on the open page", async () => {
    await says(page().locator("#replicas"), /catalog-4[\s\S]*slow/i, 40);
    // The controller is killed right after this phase: from here on its silence is expected.
    stage.admin.tolerance.away = true;
    await stage.demo.phase("one_replica_slow", 60);
    await picture(page(), "dependency-one-slow");
  });

  test("a killed controller: the page says reconnecting, then live again", async () => {
    await stage.demo.line("the kill", /killed by signal 9/, 30);
    await says(page().locator("#pill-text"), /reconnecting/i, 20);
    await picture(page(), "dependency-reconnecting");
    await stage.demo.line("the return", /the controller is back/, 60);
    await says(page().locator("#pill-text"), /live/i, 30);
    stage.admin.tolerance.away = false;
  });

  test("all slow together: the open page says off and why, without a click", async () => {
    await stage.demo.line("the fault", /all replicas slow together/, 60);
    await says(verdict(), /shared slowdown/i, 15);
    await stage.demo.phase("all_slow", 40);
    await picture(page(), "dependency-all-slow");
    await stage.demo.phase("all_slow_recovery", 90);
    await says(verdict(), /hedging calls slower than/i, 10);
  });

  test("failing: off because of errors, value and limit side by side", async () => {
    await says(verdict(), /error rate [\d.]+ % > 5 %/i, 30);
    await stage.demo.phase("failing", 40);
    await stage.demo.phase("recovery", 90);
    await says(verdict(), /hedging calls slower than/i, 10);
    await picture(page(), "dependency-recovered");
  });

  test("alerts and the record tell what happened", async () => {
    await page().goto(`${stage.origin}/alerts`);
    await says(page().locator("main"), /SharedSlowdown[\s\S]*resolved/i, 10);
    await picture(page(), "alerts");
    await page().goto(`${stage.origin}/record`);
    await says(page().locator("main"), /shared slowdown/i, 10);
    await picture(page(), "record");
    await page().goto(`${stage.origin}/agents`);
    await says(page().locator("main"), /shop/i, 10);
    await picture(page(), "agents");
  });
}
