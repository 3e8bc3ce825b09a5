// Without JavaScript: every page is readable, a policy is saved, the kill switch is thrown and
// released, by plain links and forms.
import assert from "node:assert/strict";
import { test } from "node:test";
import { at, operation, pages } from "./pages.mjs";
import { picture, says, signedIn } from "./stage.mjs";

export default function plain(stage) {
  let view;
  const page = () => view.page;

  test("somebody signs in by a link", async () => {
    view = await signedIn(stage, "admin", { context: { javaScriptEnabled: false } });
  });

  test("every page is readable", async () => {
    for (const { name, path } of pages) {
      const answer = await page().goto(`${stage.origin}${path}`);
      assert.equal(answer.status(), 200, path);
      const text = await page().locator("main").innerText();
      assert.ok(text.trim().length > 40, `${path}: ${text}`);
      assert.equal(await page().locator("#pill").isVisible(), false, "no claim to be live");
      await picture(page(), `plain-${name}`);
    }
  });

  test("the navigation alone leads to every page of it, and the filter filters", async () => {
    await page().goto(`${stage.origin}/`);
    const hrefs = await page().getByRole("navigation").first().getByRole("link").evaluateAll((links) => links.map((it) => it.getAttribute("href")));
    assert.ok(hrefs.length >= 4, hrefs.join(" "));
    for (const href of hrefs) {
      assert.equal((await page().goto(`${stage.origin}${href}`)).status(), 200, href);
    }
    await page().goto(`${stage.origin}/`);
    await page().getByRole("searchbox").first().fill("no such dependency");
    await page().getByRole("searchbox").first().press("Enter");
    await page().waitForURL(/q=no/);
    assert.equal(await page().getByRole("row").filter({ hasText: operation }).count(), 0);
  });

  test("a policy is saved", async () => {
    await page().goto(`${stage.origin}${at.policy}`);
    await page().getByRole("textbox", { name: /^percentile/i }).fill("0.955");
    await page().getByLabel(/^(reason|why)/i).first().fill("saved without JavaScript");
    await page().getByRole("button", { name: /^save/i }).first().click();
    const again = page().getByRole("button", { name: /^(confirm|yes)/i });
    if (await again.count()) await again.first().click();
    await page().goto(`${stage.origin}${at.policy}`);
    await says(page().locator("main"), /saved without JavaScript/, 10);
    const value = await page().getByRole("textbox", { name: /^percentile/i }).inputValue();
    assert.equal(value, "0.955");
  });

  test("the kill switch is thrown and released", async () => {
    await page().goto(`${stage.origin}/kill`);
    await page().getByLabel(/^(reason|why)/i).first().fill("thrown without JavaScript");
    await page().getByRole("main").getByRole("button", { name: /off|stop/i }).first().click();
    const deadline = Date.now() + 20_000;
    for (;;) {
      await page().goto(`${stage.origin}/`);
      if (/3 of 3/.test(await page().locator("#kills").innerText())) break;
      assert.ok(Date.now() < deadline, "acknowledged by all within 20 s");
    }
    await page().goto(`${stage.origin}/kill`);
    const word = await page().getByRole("main").locator("label code").first().innerText();
    await page().getByLabel(/^(reason|why)/i).first().fill("released without JavaScript");
    await page().getByRole("textbox", { name: /confirm/i }).fill(word);
    await page().getByRole("main").getByRole("button", { name: /release/i }).click();
    await page().goto(`${stage.origin}/`);
    assert.doesNotMatch(await page().locator("#kills").innerText(), /of 3/);
    assert.deepEqual(view.problems, []);
    await view.context.close();
  });
}
