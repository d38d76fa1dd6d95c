// Runs a script's cases one after another and tells of each in one line of JSON.

import process from "node:process";
import { createInterface } from "node:readline";

const SECONDS = 20;
const cases = [];

/** A case that needs nothing but the gateway. */
export function test(name, body) {
  cases.push({ name, body, staged: false });
}

/** A case for which the upstream is set up, or watched, from outside: it runs only when it is named. */
export function staged(name, body) {
  cases.push({ name, body, staged: true });
}

let lines;

/** Wait for a line from whoever started the script: only there can be seen what reached the upstream. */
export async function untilTold() {
  lines ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  await lines.next();
}

/** Run the cases named on the command line, or all that are not staged. */
export async function run() {
  const named = process.argv.slice(2);
  const chosen = cases.filter(({ name, staged }) => (named.length ? named.includes(name) : !staged));
  for (const { name, body } of chosen) {
    const problem = await attempt(body);
    console.log(JSON.stringify({ case: name, problem }));
    if (problem) process.exitCode = 1;
  }
  // Streams that a case left open must not keep the process.
  process.exit();
}

async function attempt(body) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not over after ${SECONDS} seconds`)), SECONDS * 1000);
  });
  try {
    await Promise.race([body(), late]);
    return null;
  } catch (error) {
    return String(error?.stack ?? error);
  } finally {
    clearTimeout(timer);
  }
}
