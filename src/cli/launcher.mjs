#!/usr/bin/env node
// The package's `relay`, which npm starts with Node: it runs the command line with the Bun that is installed beside it, or
// with the one on PATH. It passes arguments, standard streams, signals and the exit code on.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('./relay.ts', import.meta.url));
/** Before its install script ran, the package contains a text in place of the program. */
const LEAST_BYTES = 1_000_000;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

const isProgram = (path) => existsSync(path) && statSync(path).size > LEAST_BYTES;

/** The program of the package `bun`, or of the package for this platform that it was to be copied from. */
function bundledBun() {
  let folder;
  try {
    folder = dirname(createRequire(import.meta.url).resolve('bun/package.json'));
  } catch {
    return null;
  }
  const platforms = join(folder, '../@oven');
  const candidates = existsSync(platforms)
    ? readdirSync(platforms).filter((name) => name.startsWith('bun-'))
    : [];
  const programs = candidates.flatMap((name) =>
    ['bun', 'bun.exe'].map((file) => join(platforms, name, 'bin', file)),
  );
  return [join(folder, 'bin/bun.exe'), ...programs].find(isProgram) ?? null;
}

function run(program) {
  const child = spawn(program, [SCRIPT, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal));
  child.once('error', () => {
    process.stderr.write(
      'relay: it runs with Bun, which is not installed beside it or on PATH: npm install bun, or use the binary\n',
    );
    process.exitCode = 2;
  });
  child.once('exit', (code, signal) => {
    process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
  });
}

if (process.versions.bun === undefined) run(bundledBun() ?? 'bun');
else await import('./relay.ts');
