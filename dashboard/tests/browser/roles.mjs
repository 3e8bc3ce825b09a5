// S12: a viewer sees everything but who may come in, and changes nothing: neither by what the pages
// offer, nor by sending what they do not offer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { at, dependency, operation, pages, reason } from "./pages.mjs";
import { command, says, signedIn } from "./stage.mjs";

export default function roles(stage) {
  let vera;

  test("a viewer made on the command line signs in", async () => {
    command(stage, "operator", "add", "vera", "--role", "viewer");
    vera = await signedIn(stage, "vera");
    await says(vera.page.getByRole("banner"), /vera/, 10);
  });

  test("s12 every page is readable for a viewer, but who may come in", async () => {
    vera.tolerance.statuses.add(403);
    for (const { path } of pages) {
      const answer = await vera.page.goto(`${stage.origin}${path}`);
      assert.equal(answer.status(), path === "/access" ? 403 : 200, path);
    }
  });

  test("s12 no page offers a viewer what a viewer may not do", async () => {
    const main = vera.page.getByRole("main");
    for (const [path, names] of [
      [at.policy, /^save|^remove|^revert/i],
      ["/kill", /off|stop|release/i],
      ["/receivers", /test/i],
      ["/alerts", /silence|acknowledge/i],
    ]) {
      await vera.page.goto(`${stage.origin}${path}`);
      assert.equal(await main.getByRole("button", { name: names }).count(), 0, path);
    }
  });

  test("s12 what a viewer sends all the same is refused, and nothing has changed", async () => {
    const revision = async () => {
      await stage.admin.page.goto(`${stage.origin}${at.policy}`);
      return /revision (\d+)/i.exec(await stage.admin.page.locator("main").innerText())[1];
    };
    const before = await revision();
    for (const status of [404, 405, 422]) vera.tolerance.statuses.add(status);
    await vera.page.goto(`${stage.origin}/`);
    const acts = [
      ["/kill", { scope: "everything", engaged: "on", reason: "a viewer tries" }],
      ["/release", { dependency, operation, reason: "a viewer tries" }],
      [at.policy, { intent: "off", percentile: "0.95", budget: "0.08", holdout: "0.01", error_limit: "0.05", attempts: "2", reason: "a viewer tries", step: "save" }],
      ["/receivers/demo/test", {}],
    ];
    for (const [path, fields] of acts) {
      const status = await vera.page.evaluate(async ([path, fields]) => {
        const body = new URLSearchParams(fields);
        return (await fetch(path, { method: "POST", body, redirect: "manual" })).status;
      }, [path, fields]);
      // A page may refuse by its status, or by an address that is not known to it.
      assert.ok([403, 404, 405, 422].includes(status), `${path}: ${status}`);
    }
    assert.equal(await revision(), before);
    await stage.admin.page.goto(`${stage.origin}/record`);
    const record = await stage.admin.page.locator("main").innerText();
    assert.doesNotMatch(record, /a viewer tries/);
    await stage.admin.page.goto(`${stage.origin}/`);
    await says(stage.admin.page.locator("main"), reason, 20);
  });

  test("s10 a session that has ended shows nothing more, also on a page left open", async () => {
    await vera.page.goto(`${stage.origin}/`);
    await says(vera.page.locator("#pill-text"), /live/i, 10);
    for (const status of [401, 403]) vera.tolerance.statuses.add(status);
    vera.tolerance.away = true;
    command(stage, "operator", "remove", "vera", "--reason", "the browser test is over");
    await says(vera.page.locator("#pill-text"), /signed out/i, 40);
    assert.deepEqual(vera.problems, []);
    await vera.context.close();
  });
}
