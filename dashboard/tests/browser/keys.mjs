// What the keyboard does: `/` finds, `g` and a letter goes, `?` explains; and Tab reaches everything.
import assert from "node:assert/strict";
import { test } from "node:test";

export default function keys(stage) {
  const page = () => stage.admin.page;

  test("g and a letter goes to a page", async () => {
    await page().goto(`${stage.origin}/record`);
    for (const [letter, path] of [["o", "/"], ["a", "/agents"], ["l", "/alerts"], ["k", "/kill"]]) {
      // A page that is just opened listens when its script has run.
      await page().waitForLoadState("load");
      await page().keyboard.press("Escape");
      await page().keyboard.press("g");
      await page().keyboard.press(letter);
      await page().waitForURL(`${stage.origin}${path}`);
    }
  });

  test("/ goes to the filter, Escape leaves it", async () => {
    await page().goto(`${stage.origin}/`);
    await page().keyboard.press("/");
    const field = page().getByRole("searchbox").first();
    assert.ok(await field.evaluate((it) => it === document.activeElement), "the filter has the focus");
    await page().keyboard.type("g?");
    assert.equal(await field.inputValue(), "g?", "what is typed goes into the field, not to the keys");
    await page().keyboard.press("Escape");
    assert.ok(await field.evaluate((it) => it !== document.activeElement));
    await page().goto(`${stage.origin}/`);
  });

  test("? shows the keys, Escape closes them", async () => {
    await page().keyboard.press("?");
    const dialog = page().getByRole("dialog");
    await dialog.waitFor();
    assert.match(await dialog.innerText(), /overview/i);
    await page().keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
  });

  test("Tab comes to the way past the header first, then to every link and button of the page", async () => {
    await page().goto(`${stage.origin}/`);
    const [reached, count] = [new Set(), await page().evaluate(() =>
      [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary")]
        .filter((it) => it.checkVisibility()).length)];
    for (let i = 0; i < count + 5; i++) {
      await page().keyboard.press("Tab");
      const at = await page().evaluate(() => {
        const it = document.activeElement;
        it.dataset.reached ??= String(Math.random());
        const style = getComputedStyle(it);
        const seen = style.outlineStyle !== "none" || style.boxShadow !== "none";
        return { key: it.dataset.reached, tag: it.tagName, text: it.textContent.trim().slice(0, 40), seen };
      });
      if (at.tag === "BODY") break;
      if (i === 0) assert.match(at.text, /skip/i);
      assert.ok(at.seen, `the focus on ${at.tag} ${at.text} can be seen`);
      reached.add(at.key);
    }
    // Live rows may be replaced on the way.
    assert.ok(reached.size >= count - 3, `${reached.size} of ${count} were reached`);
  });
}
