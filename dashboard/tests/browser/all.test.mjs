// The whole product in a real browser: one demo and one browser for all parts, which come in an order
// in which each finds what it needs. `node --test` runs this file; the parts are beside it.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setUp, tearDown } from "./stage.mjs";
import walk from "./walk.mjs";
import look from "./look.mjs";
import keys from "./keys.mjs";
import operate from "./operate.mjs";
import receivers from "./receivers.mjs";
import roles from "./roles.mjs";
import plain from "./plain.mjs";
import streams from "./streams.mjs";

// Filled before the first test: parts take their figures from it when they run.
const stage = {};
before(async () => Object.assign(stage, await setUp()));
after(() => tearDown(stage.demo && stage));

describe("the demo's walk, on a page left open", () => walk(stage));
describe("every page, in both themes", () => look(stage));
describe("keys", () => keys(stage));
describe("an operator at work", () => operate(stage));
describe("receivers", () => receivers(stage));
describe("a viewer", () => roles(stage));
describe("without JavaScript", () => plain(stage));
describe("event streams", () => streams(stage));

test("no console error and no policy violation in the administrator's window", () => {
  assert.deepEqual(stage.admin.problems, []);
});

test("the demo's own verdict: every promise held", async () => {
  assert.equal(await stage.demo.stop(), 0);
});
