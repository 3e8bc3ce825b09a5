// The whole product, as a person at a browser sees it while the demo walks through its faults. The
// demo's own figures are its own verdict (its exit status, at the end); here is what a page left
// open shows of it, and what an operator does there.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openBrowser, picture, startDemo } from "./stage.mjs";

let demo, view, page, origin;

before(async () => {
  demo = startDemo(["--check", "--kill-controller", "--stay"]);
  view = await openBrowser();
  page = view.page;
  const [, link] = await demo.line("the login link", /One-time login: (\S+)/);
  origin = new URL(link).origin;
  await page.goto(link);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${origin}/`);
});

after(async () => {
  await view?.browser.close();
  demo?.kill();
});

const verdict = () => page.locator("#verdict");
const says = (locator, pattern, seconds) =>
  assert.doesNotReject(async () => {
    const deadline = Date.now() + seconds * 1000;
    let text = "";
    for (;;) {
      text = await locator.innerText().catch(() => "");
      if (pattern.test(text)) return;
      if (Date.now() > deadline) throw new Error(`${JSON.stringify(text)} does not match ${pattern}`);
      await page.waitForTimeout(250);
    }
  });

test("a new dependency appears by itself on the page left open, observing", async () => {
  await says(page.locator("#fleet"), /catalog[\s\S]*observing/i, 30);
  await picture(page, "overview-observing");
});

test("the page turns to on by itself when a policy is set, and is live", async () => {
  await demo.line("the policy", /a policy is set/, 60);
  await says(page.locator("#fleet"), /\bon\b/i, 20);
  await says(page.locator("#pill-text"), /live/i, 10);
  await page.goto(`${origin}/dependencies/catalog/get-item`);
  await says(verdict(), /hedging calls slower than/i, 10);
});

test("healthy: hedged p99 at most half of the holdout's", async () => {
  const phase = await demo.phase("healthy", 60);
  assert.ok(phase.p99_ms <= phase.p99_holdout_ms / 2, JSON.stringify(phase));
  await picture(page, "dependency-healthy");
});

test("one slow replica is named on the open page", async () => {
  await says(page.locator("#replicas"), /catalog-4[\s\S]*slow/i, 40);
  // The controller is killed right after this phase: from here on its silence is expected.
  view.tolerance.away = true;
  await demo.phase("one_replica_slow", 60);
  await picture(page, "dependency-one-slow");
});

test("a killed controller: the page says reconnecting, then live again", async () => {
  await demo.line("the kill", /killed by signal 9/, 30);
  await says(page.locator("#pill-text"), /reconnecting/i, 20);
  await picture(page, "dependency-reconnecting");
  await demo.line("the return", /the controller is back/, 60);
  await says(page.locator("#pill-text"), /live/i, 30);
  view.tolerance.away = false;
});

test("all slow together: the open page says off and why, without a click", async () => {
  await demo.line("the fault", /all replicas slow together/, 60);
  await says(verdict(), /shared slowdown/i, 15);
  await demo.phase("all_slow", 40);
  await picture(page, "dependency-all-slow");
  await demo.phase("all_slow_recovery", 90);
  await says(verdict(), /hedging calls slower than/i, 10);
});

test("failing: off because of errors, value and limit side by side", async () => {
  await says(verdict(), /error rate [\d.]+ % > 5 %/i, 30);
  await demo.phase("failing", 40);
  await demo.phase("recovery", 90);
  await says(verdict(), /hedging calls slower than/i, 10);
  await picture(page, "dependency-recovered");
});

test("alerts and the record tell what happened", async () => {
  await page.goto(`${origin}/alerts`);
  await says(page.locator("main"), /SharedSlowdown[\s\S]*resolved/i, 10);
  await picture(page, "alerts");
  await page.goto(`${origin}/record`);
  await says(page.locator("main"), /shared slowdown/i, 10);
  await picture(page, "record");
  await page.goto(`${origin}/agents`);
  await says(page.locator("main"), /shop/i, 10);
  await picture(page, "agents");
});

test("a percentile of 95 is refused beside the field; 0.96 is saved and acknowledged 3 of 3", async () => {
  await page.goto(`${origin}/policies/catalog`);
  await page.getByRole("textbox", { name: /^percentile/i }).fill("95");
  await page.getByLabel(/reason|why/i).first().fill("the browser test tries what must not pass");
  await page.getByRole("button", { name: /save|review/i }).first().click();
  await says(page.locator("main"), /expected a number from 0\.92 to 0\.999/, 10);
  await picture(page, "policy-refused");
  await page.getByRole("textbox", { name: /^percentile/i }).fill("0.96");
  await page.getByRole("button", { name: /save|review/i }).first().click();
  const confirm = page.getByRole("button", { name: /^(save|confirm)/i });
  if (await confirm.count()) await confirm.first().click();
  await page.goto(`${origin}/dependencies/catalog/get-item`);
  await says(page.locator("#agents"), /3 of 3/, 15);
});

test("kill switch: says what it stops, then acked 3 of 3 and off, and on again", async () => {
  await page.goto(`${origin}/kill`);
  await picture(page, "kill");
  await page.getByLabel(/reason|why/i).first().fill("the browser test stops everything");
  await page.getByRole("button", { name: /off|stop/i }).first().click();
  await says(page.locator("#kills"), /3 of 3/, 15);
  await page.goto(`${origin}/dependencies/catalog/get-item`);
  await says(verdict(), /kill switch/i, 10);
  await picture(page, "dependency-killed");
});

test("no console error and no policy violation anywhere", () => {
  assert.deepEqual(view.problems, []);
});

test("the demo's own verdict: every promise held", async () => {
  assert.equal(await demo.stop(), 0);
});
