// What some suites need of the machine. Where it is missing they are skipped, by name and never in silence; with
// CI=true what .ci/run installs is required: its absence is a failure.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';

export type Requirement =
  | 'PostgreSQL'
  | 'Chromium'
  | 'EventStoreDB'
  | 'anvil'
  | 'python3'
  | 'cryptography'
  | 'curl'
  | 'Node'
  | 'Go'
  | 'promtool'
  | 'nginx'
  | 'caddy'
  | 'haproxy'
  | 'pgbouncer'
  | 'systemd-analyze'
  | 'root'
  | 'mounts'
  | 'failing disk';

/** What the CI script installs, and what comes with the packages where there is a build for the platform. */
const MUST_BE_IN_CI: readonly Requirement[] = [
  'PostgreSQL',
  'Chromium',
  'anvil',
  'python3',
  'cryptography',
  'curl',
  'promtool',
  'nginx',
  'caddy',
  'haproxy',
  'pgbouncer',
  'systemd-analyze',
];

/**
 * Options for a suite or a test of node:test: `describe('…', needs, () => …)`; neither its tests nor its hooks run
 * where it is missing. Called once at the top of a test file: Bun drops a skipped `describe` without a trace, and this
 * states it for test/run.ts. `reason`: what was looked for and not found. A skipped test in a file that did not call
 * this counts as failed.
 */
export function requirement(name: Requirement, present: boolean, reason: string): { readonly skip: boolean } {
  if (present) return { skip: false };
  if (process.env.CI === 'true' && MUST_BE_IN_CI.includes(name)) {
    test(`${name} must be there with CI=true`, () => assert.fail(`${name} is missing: ${reason}`));
  }
  const notes = process.env.RELAY_TEST_SKIPS;
  const note: SkipNote = { file: callingTest(), name, reason };
  if (notes !== undefined) appendFileSync(notes, `${JSON.stringify(note)}\n`);
  return { skip: true };
}

/** One line of the file that RELAY_TEST_SKIPS names: `file` lacks the requirement. test/run.ts reads it. */
export type SkipNote = { readonly file: string; readonly name: Requirement; readonly reason: string };

/** Path from the root of the test file that is being loaded. */
function callingTest(): string {
  const found = /\btest\/[\w/-]+\.test\.ts/.exec(new Error().stack ?? '');
  if (found === null) throw new Error('a requirement is stated at the top level of a test file');
  return found[0];
}

/** Folder of PostgreSQL's server programs (`initdb`, `postgres`), newest version first; null where there is none. */
export function postgresFolder(): string | null {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...versions.map((version) => join(debian, version, 'bin')), ...searchPath()];
  return (
    folders.find((folder) => ['initdb', 'postgres'].every((name) => existsSync(join(folder, name)))) ?? null
  );
}

/** For tests that start a program of that name. Call it at the top of the file. */
export const needsProgram = (
  name: 'python3' | 'curl' | 'promtool' | 'nginx' | 'caddy' | 'haproxy' | 'pgbouncer' | 'systemd-analyze',
) =>
  requirement(
    name,
    searchPath().some((folder) => existsSync(join(folder, name))),
    `no ${name} on PATH`,
  );

/** The package `cryptography` of Python. */
export const needsCryptography = () =>
  requirement(
    'cryptography',
    spawnSync('python3', ['-c', 'import cryptography']).status === 0,
    'python3 has no package cryptography',
  );

/** Node of at least that major version, as `node` on PATH. */
export function needsNode(major: number) {
  const { stdout } = spawnSync('node', ['--version'], { encoding: 'utf8' });
  const found = /^v(\d+)\./.exec(stdout ?? '')?.[1];
  return requirement('Node', Number(found ?? 0) >= major, `no node of at least version ${major} on PATH`);
}

/** Go, with the sources of its own command, which contain golang.org/x/mod; 450 MB, so .ci/run does not install it. */
export function needsGo() {
  const { stdout, status } = spawnSync('go', ['env', 'GOROOT'], { encoding: 'utf8' });
  const note = join((stdout ?? '').trim(), 'src/cmd/vendor/golang.org/x/mod/sumdb/note/note.go');
  const present = status === 0 && existsSync(note);
  return {
    ...requirement('Go', present, 'the PATH has no program `go` with the sources of its command'),
    note,
  };
}

/** Path of a Chromium that can be started; null where there is none. */
export function chromiumPath(): string | null {
  const names = ['chromium', 'chromium-browser', 'google-chrome'];
  const paths = searchPath().flatMap((folder) => names.map((name) => join(folder, name)));
  return paths.find((path) => existsSync(path)) ?? null;
}

const searchPath = (): readonly string[] =>
  (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
