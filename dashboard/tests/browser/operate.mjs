// An operator at work: why a dependency is as it is, another policy, two people at once, the kill
// switch; and how far each has got.
import assert from "node:assert/strict";
import { test } from "node:test";
import { at, dependency, operation, reason } from "./pages.mjs";
import { picture, says, signedIn } from "./stage.mjs";

/** Opens the policy's form, and types. */
async function open(page, origin, percentile) {
  await page.goto(`${origin}${at.policy}`);
  await page.getByRole("textbox", { name: /^percentile/i }).fill(percentile);
}

/** Says why, and saves; where a page asks again, says yes. */
async function save(page, why) {
  await page.getByLabel(/^(reason|why)/i).first().fill(why);
  await page.getByRole("button", { name: /^save/i }).first().click();
  await page.waitForLoadState("load");
  const again = page.getByRole("button", { name: /^(confirm|yes)/i });
  if (await again.count()) await again.first().click();
}

export default function operate(stage) {
  const page = () => stage.admin.page;

  test("from the overview to the reason, to another policy, to acknowledged 3 of 3", async () => {
    await page().goto(`${stage.origin}/`);
    const row = page().getByRole("row").filter({ hasText: operation });
    await says(row, reason, 20);
    await row.getByRole("link", { name: dependency }).click();
    await page().waitForURL(`${stage.origin}${at.route}*`);
    await says(page().locator("main"), reason, 10);
    await page().getByRole("main").getByRole("link", { name: /policy/i }).first().click();
    await page().getByRole("textbox", { name: /^percentile/i }).fill("95");
    stage.admin.tolerance.statuses.add(422);
    await save(page(), "the browser test tries what must not pass");
    await says(page().locator("main"), /expected a number from 0\.92 to 0\.999/, 10);
    await picture(page(), "policy-refused");
    await page().getByRole("textbox", { name: /^percentile/i }).fill("0.96");
    await says(page().locator("main"), /0\.95[\s\S]*0\.96/, 10);
    await picture(page(), "policy-difference");
    await save(page(), "the browser test wants a little less load");
    await page().goto(`${stage.origin}${at.route}`);
    await says(page().locator("main"), /3 of 3/, 15);
    await page().goto(`${stage.origin}/record`);
    await says(page().locator("main"), /a little less load/, 10);
  });

  test("a save over somebody else's is refused, with what changed, and what was typed stays", async () => {
    const other = await signedIn(stage, "admin");
    await open(page(), stage.origin, "0.97");
    await open(other.page, stage.origin, "0.98");
    await save(other.page, "the second tab is quicker");
    await says(other.page.locator("main"), /0\.98/, 10);
    for (const status of [409, 412]) stage.admin.tolerance.statuses.add(status);
    await save(page(), "the first tab is late");
    await says(page().locator("main"), /not saved[\s\S]*0\.96[\s\S]*0\.98/i, 10);
    const typed = await page().getByRole("textbox", { name: /^percentile/i }).inputValue();
    assert.equal(typed, "0.97");
    await picture(page(), "policy-stale");
    assert.deepEqual(other.problems, []);
    await other.context.close();
  });

  test("the kill switch says what it stops; then 3 of 3, off, and why", async () => {
    await page().goto(`${stage.origin}/`);
    await page().getByRole("banner").getByRole("link", { name: /kill switch/i }).click();
    await says(page().locator("main"), /1 dependency[\s\S]*3 agents/i, 10);
    await picture(page(), "kill");
    await page().getByLabel(/^(reason|why)/i).first().fill("the browser test stops everything");
    await page().getByRole("main").getByRole("button", { name: /off|stop/i }).first().click();
    await says(page().locator("#kills"), /3 of 3/, 15);
    await page().goto(`${stage.origin}${at.route}`);
    await says(page().locator("main"), /off[:\s]+kill switch, by admin/i, 10);
    await picture(page(), "dependency-killed");
  });

  test("to switch on again asks for more, and a wrong word is refused", async () => {
    await page().goto(`${stage.origin}/kill`);
    const release = page().getByRole("main").getByRole("button", { name: /release/i });
    const type = async (word) => {
      await page().getByLabel(/^(reason|why)/i).first().fill("the browser test is over");
      await page().getByRole("textbox", { name: /confirm/i }).fill(word);
      await release.click();
    };
    await type("something else");
    await says(page().locator("main"), /nothing was changed/i, 10);
    const word = await page().getByRole("main").locator("label code").first().innerText();
    await type(word);
    await page().goto(`${stage.origin}${at.route}`);
    await says(page().locator("main"), reason, 60);
  });
}
