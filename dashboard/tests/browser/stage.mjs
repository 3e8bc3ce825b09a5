// What the tests share: the demo as a process, a browser that watches it, and people who sign in.
import { spawn, execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../../", import.meta.url));
export const screenshots = `${root}target/screenshots`;
const program = `${process.env.CARGO_TARGET_DIR ?? `${root}target`}/release/hedgerow`;
const browserProgram = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Sets up everything: the demo (its walk has just begun), a browser, an administrator in it. */
export async function setUp() {
  mkdirSync(screenshots, { recursive: true });
  if (!existsSync(browserProgram)) throw new Error(`${browserProgram} is missing: apt-get install chromium`);
  const demo = await startDemo(["--check", "--kill-controller", "--stay"]);
  const browser = await launch();
  const stage = { demo, browser, origin: demo.origin };
  stage.admin = await signedIn(stage, "admin");
  return stage;
}

export async function tearDown(stage) {
  await stage?.browser.close();
  stage?.demo.kill();
}

/** Starts `hedgerow demo` with the given flags; tells its phases and its addresses as they come. */
async function startDemo(flags) {
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

  const line = (what, pattern, seconds = 60) =>
    until(what, () => lines.map((l) => pattern.exec(l)).find(Boolean), seconds);
  const [, address] = await line("its address", /^Dashboard:\s+(\S+)/);
  const [, log] = await line("its folder", /^Controller log: (\S+)/);
  return {
    line,
    origin: new URL(address).origin,
    store: `${dirname(log)}/hedgerow.db`,
    phase: (name, seconds) => until(`phase ${name}`, () => phases.find((p) => p.phase === name), seconds),
    async stop() {
      child.kill("SIGINT");
      return ended;
    },
    kill: () => child.kill("SIGKILL"),
  };
}

/** A browser of its own: what is killed must not take the others with it. */
export function launch() {
  return chromium.launch({
    executablePath: browserProgram,
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ],
  });
}

/** Runs one of the program's commands on the demo's store; gives what it says. */
export function command(stage, ...args) {
  return execFileSync(program, [...args, "--store", stage.demo.store], { encoding: "utf8" });
}

/**
 * A window of its own, without anybody's session, that keeps every console error, page error and
 * policy violation its pages see.
 */
export async function openView(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, ...options });
  const problems = [];
  /** What is no fault of the page: a controller that is away on purpose, answers a test provokes. */
  const tolerance = { away: false, statuses: new Set() };
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) =>
      console.error(`policy violation: ${event.violatedDirective} by ${event.blockedURI}`));
  });
  context.on("page", (page) => {
    page.on("console", (message) => {
      if (message.type() !== "error") return;
      const text = message.text();
      const away = tolerance.away && /Failed to load resource|net::ERR|fetch|htmx:(sse:)?error/i.test(text);
      // The browser also notes that something was refused, which is what some tests are about.
      const status = Number(/status of (\d+)/.exec(text)?.[1]);
      if (!away && !tolerance.statuses.has(status)) problems.push(`${page.url()}: ${text}`);
    });
    page.on("pageerror", (error) => problems.push(`${page.url()}: ${error}`));
  });
  return { context, page: await context.newPage(), problems, tolerance };
}

/** A window in which somebody is signed in, by a one-time link as the command line makes it. */
export async function signedIn(stage, name, options = {}) {
  const view = await openView(options.browser ?? stage.browser, options.context);
  const said = command(stage, "login-link", "--operator", name, "--dashboard-url", stage.origin);
  const link = /https?:\/\/\S+/.exec(said)[0];
  await view.page.goto(link);
  await view.page.getByRole("button", { name: "Sign in" }).click();
  await view.page.waitForURL(`${stage.origin}/`);
  return view;
}

/** Waits until what `locator` shows matches. */
export async function says(locator, pattern, seconds) {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const text = await locator.innerText().catch(() => "");
    if (pattern.test(text)) return text;
    if (Date.now() > deadline) throw new Error(`${JSON.stringify(text)} does not match ${pattern}`);
    await locator.page().waitForTimeout(250);
  }
}

/** Waits until `look` gives something; fails after `seconds` with what it gave last. */
export async function until(what, look, seconds) {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const [ok, found] = await look();
    if (ok) return found;
    if (Date.now() > deadline) throw new Error(`in vain: ${what}; it was ${JSON.stringify(found)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** A metric without labels, of the controller. */
export async function metric(stage, name) {
  const text = await (await fetch(`${stage.origin}/metrics`)).text();
  const line = new RegExp(`^hedgerow_controller_${name} (\\S+)$`, "m").exec(text);
  if (!line) throw new Error(`/metrics has no hedgerow_controller_${name}`);
  return Number(line[1]);
}

/** Light and dark pictures of the page as it is. */
export async function picture(page, name) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: `${screenshots}/${name}-${colorScheme}.png` });
  }
  await page.emulateMedia({ colorScheme: "light" });
}
