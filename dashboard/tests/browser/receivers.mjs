// A test notification goes the real way, to the demo's webhook, and its answer is shown.
import assert from "node:assert/strict";
import { test } from "node:test";
import { picture, says } from "./stage.mjs";

export default function receivers(stage) {
  test("the test button says what the receiver answered", async () => {
    const { page } = stage.admin;
    await page.goto(`${stage.origin}/receivers`);
    await says(page.locator("main"), /\bdemo\b[\s\S]*webhook/i, 10);
    await page.getByRole("main").getByRole("button", { name: /test/i }).first().click();
    await says(page.locator("main"), /\b200\b/, 20);
    await picture(page, "receivers-tested");
  });

  test("what was sent during the walk is accounted for", async () => {
    const { page } = stage.admin;
    await page.goto(`${stage.origin}/receivers`);
    const text = await page.locator("main").innerText();
    assert.doesNotMatch(text, /given up[^\n]*[1-9]/i);
  });
}
