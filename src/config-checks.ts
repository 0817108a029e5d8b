// Checks of the environment as a whole: misspelled variables, and paths that the service needs.
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';

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

export type MisspelledVariable = { readonly variable: string; readonly nearest: string };

/** The set variables that are none of `known`, but begin like one or differ from one by at most two letters. */
export function misspelledVariables(
  env: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): readonly MisspelledVariable[] {
  const names = new Set(known);
  return Object.keys(env)
    .filter((name) => !names.has(name) && env[name]?.trim() && !CLUSTER_SERVICE.test(name))
    .flatMap((variable) => {
      const [nearest = '', distance] = known
        .map((name) => [name, editDistance(variable.toUpperCase(), name)] as const)
        .reduce((best, next) => (next[1] < best[1] ? next : best));
      const ours =
        FAMILIES.some((beginning) => variable.startsWith(beginning)) ||
        (nearest.length >= LONG_NAME && distance <= NEAR);
      return ours ? [{ variable, nearest }] : [];
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
 * Why the service cannot keep its files in `folder`; null if it can. Changes nothing. `mayUse`: whether this user may
 * list, read and write a folder.
 */
export function folderProblem(folder: string, mayUse: (path: string) => boolean = isUsable): string | null {
  const nearest = existingParent(folder);
  const problem = !statSync(nearest).isDirectory()
    ? 'is no folder'
    : mayUse(nearest)
      ? null
      : `is not writable by user ${userInfo().username}`;
  if (problem === null) return null;
  return nearest === folder ? `${problem}: ${folder}` : `cannot be created: ${nearest} ${problem}`;
}

function isUsable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** `path`, or the nearest folder above it that exists. */
function existingParent(path: string): string {
  for (let at = path; ; at = dirname(at)) if (existsSync(at) || dirname(at) === at) return at;
}
