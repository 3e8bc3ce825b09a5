// The demo as a process, and a browser that watches it.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../../", import.meta.url));
export const screenshots = `${root}target/screenshots`;

/** Starts `hedgerow demo` with the given flags; tells its phases and its addresses as they come. */
export function startDemo(flags) {
  const program = `${process.env.CARGO_TARGET_DIR ?? `${root}target`}/release/hedgerow`;
  if (!existsSync(program)) throw new Error(`${program} is missing: cargo build --release makes it`);
  const child = spawn(program, ["demo", ...flags], { stdio: ["ignore", "pipe", "pipe"] });
  const phases = [];
  const waiting = [];
  const lines = [];
  const told = () => waiting.splice(0).forEach((go) => go());
  createInterface({ input: child.stdout }).on("line", (line) => {
    phases.push(JSON.parse(line));
    told();
  });
  createInterface({ input: child.stderr }).on("line", (line) => {
    lines.push(line);
    console.log(`# ${line}`);
    told();
  });
  const ended = new Promise((resolve) => child.on("exit", (code) => {
    told();
    resolve(code);
  }));

  /** The first truthy value `look` gives, looked at after each line; fails after `seconds`. */
  async function until(what, look, seconds) {
    const deadline = Date.now() + seconds * 1000;
    for (;;) {
      const found = look();
      if (found) return found;
      if (child.exitCode !== null) throw new Error(`the demo ended (${child.exitCode}) before: ${what}`);
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`not within ${seconds} s: ${what}`);
      await new Promise((resolve) => {
        waiting.push(resolve);
        setTimeout(resolve, Math.min(left, 1000));
      });
    }
  }

  return {
    phases,
    until,
    line: (what, pattern, seconds = 60) =>
      until(what, () => lines.map((l) => pattern.exec(l)).find(Boolean), seconds),
    phase: (name, seconds) => until(`phase ${name}`, () => phases.find((p) => p.phase === name), seconds),
    async stop() {
      child.kill("SIGINT");
      return ended;
    },
    kill: () => child.kill("SIGKILL"),
  };
}

/** A browser page that keeps every console error, page error and policy violation it sees. */
export async function openBrowser() {
  mkdirSync(screenshots, { recursive: true });
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ],
  });
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 } });
  const problems = [];
  /** While the controller is away on purpose, failed requests are no problem of the page. */
  const tolerance = { away: false };
  const watch = (page) => {
    page.on("console", (message) => {
      const away = tolerance.away && /Failed to load resource|net::ERR|fetch|htmx:(sse:)?error/i.test(message.text());
      // The browser also notes that a form was refused, which is what some tests are about.
      if (/status of 422/.test(message.text())) return;
      if (message.type() === "error" && !away) problems.push(message.text());
    });
    page.on("pageerror", (error) => problems.push(String(error)));
  };
  context.on("page", watch);
  const page = await context.newPage();
  return { browser, context, page, problems, tolerance };
}

/** Light and dark pictures of the page as it is. */
export async function picture(page, name) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: `${screenshots}/${name}-${colorScheme}.png` });
  }
  await page.emulateMedia({ colorScheme: "light" });
}
