// Every page as it is: it answers, it is live, nothing is wrong in the console, axe finds nothing
// serious, in light and dark; a picture of each is left in target/screenshots/.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { bare, pages } from "./pages.mjs";
import { openView, picture, says, signedIn } from "./stage.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What is serious on the page as it is, in one line each. */
async function faults(page, colorScheme) {
  await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
  // Colours may change over a moment.
  await page.waitForTimeout(150);
  const found = await page.evaluate(async () => {
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    const { violations } = await window.axe.run(document, { runOnly: { type: "tag", values: tags } });
    return violations
      .filter((it) => it.impact === "serious" || it.impact === "critical")
      .map((it) => `${it.id} (${it.impact}): ${it.help}: ${it.nodes.slice(0, 3).map((n) => n.target.join(" ")).join(", ")}`);
  });
  return found.map((fault) => `${colorScheme}: ${fault}`);
}

export default function look(stage) {
  for (const { name, path, open, status = 200 } of [...pages, ...bare]) {
    test(`${path} is well in both themes`, async () => {
      const view = open ? await stranger(stage) : await somebody(stage);
      view.problems.length = 0;
      view.tolerance.statuses = new Set(status === 200 ? [] : [status]);
      const { page } = view;
      const answer = await page.goto(`${stage.origin}${path}`);
      assert.equal(answer.status(), status);
      if (!open && status === 200) await says(page.locator("#pill-text"), /live/i, 20);
      assert.equal(await page.getByRole("heading", { level: 1 }).count(), 1, "one first heading");
      assert.equal(await page.locator("html").getAttribute("lang"), "en");
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(wide <= 0, `the page itself scrolls sideways, by ${wide} px`);
      await picture(page, `page-${name}`);
      const found = [...await faults(page, "light"), ...await faults(page, "dark")];
      assert.deepEqual(found, []);
      assert.deepEqual(view.problems, []);
      if (open) await view.context.close();
    });
  }
}

async function stranger(stage) {
  const view = await openView(stage.browser);
  await view.context.addInitScript(axe);
  return view;
}

/** One window for all pages; the tests of accessibility are brought into it before any page is. */
let window;
async function somebody(stage) {
  if (!window) {
    window = await signedIn(stage, "admin");
    await window.context.addInitScript(axe);
  }
  return window;
}
