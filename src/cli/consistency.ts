// relay consistency: verifies that a newer checkpoint of a transparency log continues one that was kept. With files only,
// it uses no network.
import type { Command } from 'commander';
import { verifierPrimitives } from '#src/app/keys.ts';
import { toBase64 } from '../domain/encoding.ts';
import type { Checkpoint, TreeHead } from '../domain/transparency/checkpoint.ts';
import { type ConsistencyProblem, verifyGrowth } from '../domain/transparency/growth.ts';
import { CannotRun, exiting } from './exit.ts';
import { readCheckpoint } from './read-checkpoint.ts';
import { isUrl, nameOf, readJsonSource } from './read-source.ts';
import { mark, numbered, paint, plain, print, printJson, row, shown } from './terminal.ts';
import { keysOfOrigin, originFrom, readKeys } from './verify.ts';

type Options = { readonly keys?: string; readonly proof?: string; readonly json?: true };

const HELP = `
A checkpoint is the text of /log/checkpoint, or an execution response, whose "checkpoint" is read.
With the URL of a relay as the newer one, its newest checkpoint and the proof are fetched, and without --keys its keys too:
then the result shows only that the relay agrees with itself: save the keys with the checkpoint.
With two files, --proof is the saved answer of /log/consistency?from=<older size>&to=<newer size>; two checkpoints of one
size need none.

Exit status: 0 the newer one continues the older one; 1 it does not, or a signature does not verify; 2 could not run.

Examples:
  Has the relay kept everything that my checkpoint covers?
    relay consistency kept.checkpoint https://relay.example --keys jwks.json
  The same offline:
    curl -sf https://relay.example/log/checkpoint > new.checkpoint
    curl -sf 'https://relay.example/log/consistency?from=17&to=42' > proof.json
    relay consistency kept.checkpoint new.checkpoint --proof proof.json --keys jwks.json`;

export function addConsistency(program: Command): void {
  program
    .command('consistency')
    .description('Verify that a newer checkpoint of the transparency log continues an older one.')
    .argument('<old>', 'the checkpoint that you kept; - for standard input')
    .argument('<new|url>', 'a newer checkpoint, or the URL of the relay')
    .option('--keys <jwks>', "the relay's key set: a file or a URL")
    .option('--proof <file>', 'the answer of /log/consistency: a file or a URL')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', HELP)
    .action(exiting(compare));
}

async function compare(oldSource: string, newSource: string, options: Options): Promise<boolean> {
  const keySource = options.keys ?? keysOfOrigin(newSource);
  const older = await readCheckpoint(oldSource);
  const newer = await readCheckpoint(checkpointSource(newSource));
  const keys = await readKeys(keySource);
  const proofFrom = options.proof ?? (isUrl(newSource) ? proofUrl(newSource, older, newer) : null);
  const proof = proofFrom === null ? null : await readJsonSource(proofFrom);
  const claim = { older: older.note, newer: newer.note, proof };
  const verdict = await verifyGrowth(claim, keys, verifierPrimitives);
  if (!verdict.ok && verdict.problem === 'missing')
    throw new CannotRun(
      `--proof is missing: the sizes differ, so name the answer of /log/consistency?from=${older.size}&to=${newer.size}`,
    );
  const result = verdict.ok
    ? { ok: true, older: summary(verdict.older), newer: summary(verdict.newer) }
    : { ok: false, problem: verdict.problem, older: summary(older), newer: summary(newer) };
  if (options.json) printJson({ ...result, keysFrom: keySource });
  else printResult(older, newer, verdict.ok ? null : verdict.problem, keySource);
  return verdict.ok;
}

/** The URL of a relay means its newest checkpoint. */
function checkpointSource(source: string): string {
  if (!isUrl(source)) return source;
  const origin = originFrom(source);
  return [origin, `${origin}/`].includes(source) ? `${origin}/log/checkpoint` : source;
}

/** null: no proof is needed or possible. */
function proofUrl(source: string, older: TreeHead, newer: TreeHead): string | null {
  if (older.size === 0 || older.size >= newer.size) return null;
  return `${originFrom(source)}/log/consistency?from=${older.size}&to=${newer.size}`;
}

const summary = (head: TreeHead | Checkpoint) => ({
  origin: head.origin,
  size: head.size,
  root: toBase64(head.root),
  ...('keyId' in head && { keyId: head.keyId }),
});

const PROBLEMS: Readonly<Record<ConsistencyProblem, string>> = {
  older: 'The older checkpoint is not signed by a checkpoint key of the key set.',
  newer: 'The newer checkpoint is not signed by a checkpoint key of the key set.',
  origin: 'The checkpoints are of two different logs.',
  smaller:
    'The newer checkpoint has fewer leaves than the older one: leaves were removed, or the order is reversed.',
  fork: 'Both are signed over the same number of leaves and have different roots: keep both, they prove two histories.',
  missing: 'A proof is missing.',
  malformed: 'The proof is not an answer of /log/consistency.',
  sizes: 'The proof is between other sizes.',
  inconsistent:
    'The proof does not hold: it is wrong, or leaves that the older checkpoint covers were changed or removed. Keep both.',
};

function printResult(
  older: TreeHead & { readonly source: string },
  newer: TreeHead & { readonly source: string },
  problem: ConsistencyProblem | null,
  keySource: string,
): void {
  print(paint('bold', `Log ${shown(newer.origin)}`));
  for (const [name, { size, root, source }] of [['older', older] as const, ['newer', newer] as const])
    print(row(name, `${numbered(size, 'leaf', 'leaves')}, root ${toBase64(root)}, from ${plain(source)}`));
  print(row('keys', plain(nameOf(keySource))), '');
  const words = problem === null ? 'The newer checkpoint continues the older one.' : PROBLEMS[problem];
  print(`  ${mark(problem === null)} ${words}`, '');
  print(
    problem === null
      ? paint('green', 'Verified: nothing was changed or removed.')
      : paint('red', 'NOT verified.'),
  );
}
