// Runs a code snippet as its reader would: saved to a file, in a folder that has the packages it names, to its end.
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { rootPath, runtimeName } from './runtime.ts';

export type RunnableSnippet = { readonly id: string; readonly language: string; readonly code: string };

export type SnippetRun = {
  /** null where a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  /** Everything it wrote, and how it ended: for the message of an assertion. */
  readonly output: string;
};

export type RunOptions = {
  readonly args?: readonly string[];
  /** Beside what a process needs to start at all. */
  readonly env?: Readonly<Record<string, string>>;
  /** JavaScript under the Node on PATH, not under the test's runtime. */
  readonly node?: true;
};

/** A folder of its own in `parent` for files of TypeScript that import this project's packages by name. */
export function snippetFolder(parent: string): string {
  const folder = join(parent, 'snippets');
  mkdirSync(folder);
  // Deno looks into node_modules only beside a package.json.
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  mkdirSync(join(folder, 'node_modules'));
  for (const name of readdirSync(join(rootPath, 'node_modules')))
    symlinkSync(join(rootPath, 'node_modules', name), join(folder, 'node_modules', name));
  // As it is installed from the service.
  symlinkSync(join(rootPath, 'src/verify/built'), join(folder, 'node_modules/webhook-relay'));
  return folder;
}

const LIMIT_MS = 120_000;
let files = 0;

/** Rejects where the language is none that a reader could run. */
export async function runSnippet(
  folder: string,
  { id, language, code }: RunnableSnippet,
  { args = [], env = {}, node }: RunOptions = {},
): Promise<SnippetRun> {
  const { command, before, extension } =
    node === undefined ? runnerOf(language) : { command: 'node', before: [], extension: 'mjs' };
  const file = join(folder, `${id}-${files++}.${extension}`);
  writeFileSync(file, code);
  const child = spawn(command, [...before, file, ...args], {
    cwd: folder,
    env: { ...inherited(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
  const exit = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  }).finally(() => clearTimeout(timer));
  const { stdout, stderr } = output;
  return { code: exit, stdout, output: `${id} ended with ${exit}\n${stdout}\n${stderr}` };
}

type Runner = { readonly command: string; readonly before: readonly string[]; readonly extension: string };

function runnerOf(language: string): Runner {
  switch (language) {
    case 'shell':
      return { command: 'sh', before: [], extension: 'sh' };
    case 'python':
      return { command: 'python3', before: [], extension: 'py' };
    case 'javascript':
      return { command: process.execPath, before: runtimeName === 'bun' ? [] : DENO_RUN, extension: 'mjs' };
    default:
      throw new Error(`nothing runs a snippet of language ${language}`);
  }
}

/** What a reader's agent needs: the network, its key, its packages. */
const DENO_RUN = ['run', '--no-lock', '--allow-net', '--allow-env', '--allow-read', '--allow-sys'];

function inherited(): Record<string, string> {
  const names = ['PATH', 'HOME', 'TMPDIR', 'DENO_DIR'];
  const kept = names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []));
  return { ...Object.fromEntries(kept), NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' };
}
