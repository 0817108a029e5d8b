// Checks of the environment as a whole: misspelled variables, and paths that the service needs.
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import process from 'node:process';
import { systemCode } from './lib/system-error.ts';

/** Beginnings that belong to this service: what begins so and is not known is a spelling error. */
const FAMILIES = [
  'X402_',
  'EGRESS_',
  'RATE_',
  'POLICY_',
  'RETENTION_',
  'WITNESS_',
  'SCHEDULE',
  'SIGNING_KEY',
  'TARGET_QUOTA',
  'TRUSTED_PROX',
  'CDP_API_',
];

/** What Kubernetes adds for a service whose name begins like one of ours. */
const CLUSTER_SERVICE = /_SERVICE_(HOST|PORT(_\w+)?)$|_PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?$/;

/** Shorter names differ from too many others by two letters. */
const LONG_NAME = 9;
const NEAR = 2;

/** The set variables that are none of `known`, but begin like one or differ from one by at most two letters. */
export function misspelledVariables(
  env: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): readonly { readonly variable: string; readonly nearest: string }[] {
  const names = new Set(known);
  return Object.keys(env)
    .filter((name) => !names.has(name) && env[name]?.trim() && !CLUSTER_SERVICE.test(name))
    .flatMap((variable) => {
      const [nearest = '', distance] = known
        .map((name) => [name, editDistance(variable.toUpperCase(), name)] as const)
        .reduce((best, next) => (next[1] < best[1] ? next : best));
      if (FAMILIES.some((beginning) => variable.startsWith(beginning)))
        return [{ variable, nearest: known.find((name) => name.startsWith(variable)) ?? nearest }];
      return nearest.length >= LONG_NAME && distance <= NEAR ? [{ variable, nearest }] : [];
    });
}

/** Levenshtein distance: letters added, dropped or replaced. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (const [line, letter] of [...a].entries()) {
    let [diagonal, left] = [line, line + 1];
    row = row.map((above, column) => {
      if (column === 0) return left;
      const replaced = diagonal + (b[column - 1] === letter ? 0 : 1);
      diagonal = above;
      left = Math.min(above + 1, left + 1, replaced);
      return left;
    });
  }
  return row[b.length] ?? a.length;
}

/**
 * Why the service cannot keep its files in `folder`; null if it can. Changes nothing. `access`: throws the system's error if
 * this user may not list, read and write a folder.
 */
export function folderProblem(folder: string, access: (path: string) => void = accessFolder): string | null {
  const nearest = existingParent(folder);
  if (!statSync(nearest).isDirectory())
    return nearest === folder ? `is no folder: ${folder}` : `cannot be created: ${nearest} is no folder`;
  try {
    access(nearest);
    return null;
  } catch (error) {
    const problem =
      systemCode(error) === 'EROFS'
        ? 'is on a read-only file system'
        : `is not writable by user ${userName()}`;
    if (nearest === folder) return `${problem}: ${folder}`;
    // A folder that may not be searched hides what is in it.
    return `cannot be created, or reached: ${nearest} ${problem}`;
  }
}

const accessFolder = (path: string): void =>
  accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);

/** Of this process; its id if it has none. The runtime's own function returns what the environment states (Bun). */
export function userName(): string {
  const id = String(process.geteuid?.() ?? 'unknown');
  try {
    const users = readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .map((line) => line.split(':'));
    return users.find(([, , uid]) => uid === id)?.[0] ?? id;
  } catch {
    return id;
  }
}

/** `path`, or the nearest folder above it that exists. */
function existingParent(path: string): string {
  for (let at = path; ; at = dirname(at)) if (existsSync(at) || dirname(at) === at) return at;
}
