// Event streams: none is left of tabs that are gone, however they went, and a page has one.
import assert from "node:assert/strict";
import { get } from "node:http";
import { test } from "node:test";
import { launch, metric, says, signedIn, until } from "./stage.mjs";

const TABS = 200;

export default function streams(stage) {
  const open = () => metric(stage, "pages_open");
  const settles = (what, wanted) =>
    until(what, async () => {
      const found = await open();
      return [found === wanted, found];
    }, 30);

  test(`b81 ${TABS} tabs opened and killed leave no stream`, async () => {
    const before = await open();
    const cookies = await stage.admin.context.cookies();
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
    const requests = Array.from({ length: TABS }, () => new Promise((resolve, reject) => {
      // A connection each, as a tab in a browser of its own has.
      const request = get(`${stage.origin}/live?page=overview`, { agent: false, headers: { cookie } }, (answer) => {
        answer.resume();
        answer.on("error", () => {});
        resolve({ request, status: answer.statusCode });
      });
      request.on("error", reject);
    }));
    const tabs = await Promise.all(requests);
    assert.deepEqual([...new Set(tabs.map(({ status }) => status))], [200]);
    await settles("all are open", before + TABS);
    // Without a word: as a tab whose process is killed.
    for (const { request } of tabs) request.destroy();
    await settles("none is left", before);
    assert.equal((await fetch(`${stage.origin}/healthz`)).status, 200);
  });

  test("b81 a browser that is killed with its tabs leaves no stream", async () => {
    const before = await open();
    const browser = await launch();
    const view = await signedIn(stage, "admin", { browser });
    const paths = ["/agents", "/alerts", "/kill"];
    await says(view.page.locator("#pill-text"), /live/i, 20);
    for (const path of paths) {
      const page = await view.context.newPage();
      await page.goto(`${stage.origin}${path}`);
      await says(page.locator("#pill-text"), /live/i, 20);
    }
    await settles("a stream a tab", before + 1 + paths.length);
    const session = await browser.newBrowserCDPSession();
    // It cannot answer that it has crashed.
    session.send("Browser.crash").catch(() => {});
    await new Promise((resolve) => browser.on("disconnected", resolve));
    await settles("none is left", before);
  });

  test("b82 after ten swaps a page has one stream, and the next page still loads", async () => {
    const { page } = stage.admin;
    // The page before lets go of its stream.
    await page.goto(`${stage.origin}/`);
    await says(page.locator("#pill-text"), /live/i, 20);
    const withIt = await open();
    await page.goto("about:blank");
    const before = withIt - 1;
    await settles("the page before has let go", before);
    await page.goto(`${stage.origin}/`);
    await says(page.locator("#pill-text"), /live/i, 20);
    const field = page.getByRole("searchbox").first();
    for (const words of ["c", "ca", "cat", "cata", "catal", "x", "xy", "catalog", "get", ""]) {
      const swapped = page.waitForResponse((it) => new URL(it.url()).pathname === "/" && it.request().headers()["hx-request"] === "true");
      await field.fill(words);
      await swapped;
    }
    await says(page.locator("main"), /catalog/, 10);
    await settles("one stream", before + 1);
    await page.goto(`${stage.origin}/agents`);
    await says(page.locator("main"), /shop/i, 10);
    await settles("one stream", before + 1);
  });
}
