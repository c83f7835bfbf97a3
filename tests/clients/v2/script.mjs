// What the scripts of local/ share: their words, and how they print.
const given = process.argv.slice(2);

// With --json, a script prints JSON for programs.
export const asJson = given.includes('--json');
export const words = given.filter((word) => word !== '--json');

// JSON: indented on a terminal, one line for programs.
export function print(value) {
  console.log(JSON.stringify(value, null, process.stdout.isTTY && !asJson ? 2 : 0));
}

// A script that fails says why in one line; only a bug in it has a trace.
process.on('uncaughtException', (error) => {
  if (error.cause?.code === 'ECONNREFUSED') console.error('the stack does not answer: start one with make run in another terminal');
  else console.error(error.constructor === Error ? error.message : error.stack);
  process.exit(1);
});
