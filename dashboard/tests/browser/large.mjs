// How a browser takes the overview of a large fleet (1,000 dependencies, 10,000 agents; every figure
// differs each second): tasks over 50 ms under live updates, in which the page answers nobody.
//
//   cargo build --release -p hedgerow-dashboard --example preview
//   node dashboard/tests/browser/large.mjs [seconds] [path]
//
// A measurement, not a test: a busy machine makes any task long.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { launch, openView, says } from "./stage.mjs";

const seconds = Number(process.argv[2] ?? 30);
const path = process.argv[3] ?? "/";
const root = fileURLToPath(new URL("../../../", import.meta.url));
const program = `${process.env.CARGO_TARGET_DIR ?? `${root}target`}/release/examples/preview`;

const preview = spawn(program, ["0", "big"], { stdio: ["ignore", "pipe", "inherit"] });
const browser = await launch();
try {
  const link = await new Promise((resolve, reject) => {
    createInterface({ input: preview.stdout }).on("line", (line) => resolve(/http\S+/.exec(line)[0]));
    preview.on("error", reject);
  });
  const view = await openView(browser);
  await view.context.addInitScript(() => {
    window.long = [];
    new PerformanceObserver((list) => {
      for (const it of list.getEntries()) window.long.push([it.startTime, it.duration]);
    }).observe({ type: "longtask", buffered: true });
  });
  await view.page.goto(link);
  await view.page.getByRole("button", { name: "Sign in" }).click();
  const { origin } = new URL(link);
  const began = Date.now();
  await view.page.goto(`${origin}${path}`);
  await says(view.page.locator("#pill-text"), /live/i, 60);
  const live = Date.now() - began;
  // What opening the page costs is told apart from what keeping it live does.
  await view.page.waitForTimeout(5_000);
  const opening = await view.page.evaluate(() => window.long.splice(0));
  await view.page.waitForTimeout(seconds * 1_000);
  const running = await view.page.evaluate(() => window.long.splice(0));
  const tell = (what, tasks) => {
    const times = tasks.map(([, took]) => took).sort((a, b) => a - b);
    const sum = times.reduce((a, b) => a + b, 0);
    console.log(`${what}: ${times.length} tasks over 50 ms, longest ${times.at(-1) ?? 0} ms, together ${sum} ms`);
  };
  console.log(`${path}: live after ${live} ms, ${await view.page.locator("tbody tr").count()} rows`);
  tell("opening", opening);
  tell(`${seconds} s of live figures`, running);
  if (view.problems.length) console.log(view.problems);
} finally {
  await browser.close();
  preview.kill();
}
