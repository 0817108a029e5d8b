// relay keys: the signing keys, in the key file and in the event log.
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import type { KeyPurpose } from '#src/domain/events/signing-keys.ts';
import {
  type ListedKey,
  listKeys,
  retireKey,
  rotateKeys,
  windowOf,
} from '#src/usecases/signing-keys/change-keys.ts';
import { readConfig } from '../config.ts';
import { CannotRun, FoundWrong } from './exit.ts';
import { withKeys } from './operator.ts';
import { readDate, textOf } from './options.ts';
import { plain, print, printJson, table } from './terminal.ts';

type Json = { readonly json?: true };
type InitOptions = Json & { readonly file?: string };
type RotateOptions = Json & { readonly purpose: KeyPurpose };
type RetireOptions = Json & { readonly compromised?: true; readonly since?: number };

const LIST_HELP = `
States:
  active        signs: receipts, or the checkpoints of the transparency log
  retiring      signs where its successor is not available, until the time shown
  retired       no longer signs; what it signed within its window stays valid
  compromised   no longer signs: a receipt from the time shown on does not verify, nor does any checkpoint
  unannounced   in the key file, but not in the log: it does not sign until "relay keys rotate" announces it
Reads the log of DATA_DIR, or of EVENTSTORE_URL, also while a service runs on it. Nothing is written, and no private
key is shown.`;

const ROTATE_HELP = `
A new key is written to the key file, then announced in the event log together with the retirement of the old keys,
which are then marked in the file. Services on this file and log follow without a restart: receipts are signed by the
old key for three minutes, so that verifiers which cache the key set have the new one.
If it is interrupted, run it again: a key that was not announced yet is announced then.
With several machines run it on one, and copy its key file to the others within ten minutes: until then they sign
with the old key, after that they sign nothing. The secret in the file never changes. --purpose checkpoint adds the first
checkpoint key to a log from before the transparency log.`;

const RETIRE_HELP = `
The key stops signing after ten minutes; what it signed until then stays valid. --compromised: it stops signing as soon
as services have read the retirement, within seconds. A receipt that it signed at or after --since (default: now) does
not verify any more, and "relay audit" reports it; an earlier one still verifies. Of a compromised checkpoint key no
checkpoint counts, because a checkpoint contains no time. This is recorded in the event log and cannot be undone; a
second call can only end the key earlier.
The only key that can sign is not retired: run "relay keys rotate" first. Write -- before an id that begins with -.`;

export function addKeys(program: Command): void {
  const keys = program.command('keys').description('Manage the signing keys.');
  keys
    .command('init')
    .description('Create a file with new signing keys and a new secret, readable by its owner only.')
    .option('--file <file>', 'where to create it (default: SIGNING_KEYS_FILE, or else keys.json in DATA_DIR)')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', '\nAn existing file is never changed.')
    .action(initKeys);
  keys
    .command('list')
    .description('List all keys with their windows, and which of them the key file contains.')
    .option('--json', 'print an array of JSON')
    .addHelpText('after', LIST_HELP)
    .action(listAll);
  const purpose = new Option('--purpose <purpose>', 'what the key signs').choices(['receipt', 'checkpoint']);
  keys
    .command('rotate')
    .description('Replace the signing key by a new one.')
    .addOption(purpose.default('receipt'))
    .option('--json', 'print the result as JSON')
    .addHelpText('after', ROTATE_HELP)
    .action(rotate);
  keys
    .command('retire')
    .description('Retire a key.')
    .argument('<key>', 'its id, as "relay keys list" shows it', readKeyId)
    .option('--compromised', 'the private key may be known to others')
    .option('--since <date>', 'since when, RFC 3339: 2026-01-31 or 2026-01-31T12:00:00Z', readDate)
    .option('--json', 'print the result as JSON')
    .addHelpText('after', RETIRE_HELP)
    .action(retire);
}

const readKeyId = textOf(/^[A-Za-z0-9_-]{43}$/, 'It must be 43 characters long.');

/** For a person, to the minute; of a compromise to the second: a signature before it counts, one after it does not. */
const utc = (instant: string | null, length = 16): string =>
  `${(instant ?? '').slice(0, length).replace('T', ' ')} UTC`;
const second = (instant: string | null): string => utc(instant, 19);

async function initKeys({ file, json }: InitOptions): Promise<void> {
  const path = file === undefined ? readConfig().keyFile.path : resolve(file);
  const { createKeyFile, readKeyFile } = await import('#src/app/operator.ts');
  createKeyFile(path);
  const { keys } = readKeyFile(path);
  if (json) return printJson({ file: path, keyIds: keys.map(({ keyId }) => keyId) });
  print(...keys.map(({ purpose, keyId }) => `${purpose} key ${keyId}`), `in ${path}`);
  print('Keep a copy of this file: receipts are signed with it, and the event log is bound to its secret.');
}

async function listAll({ json }: Json): Promise<void> {
  const rows = await withKeys((deps) => listKeys(deps, deps.store.read().keys));
  if (json) return printJson(rows);
  print(...table(['key', 'purpose', 'state', 'from', 'private key'], rows.map(cells)));
}

const STATES: Record<ListedKey['state'], (key: ListedKey) => string> = {
  active: () => 'active',
  retiring: ({ notAfter }) => `retiring until ${utc(notAfter)}`,
  retired: ({ notAfter }) => `retired ${utc(notAfter)}`,
  compromised: ({ compromisedAt }) => `compromised since ${second(compromisedAt)}`,
  unannounced: () => 'unannounced',
};

function cells(key: ListedKey): string[] {
  const { keyId, purpose, state, notBefore, inFile } = key;
  const from = notBefore === null ? '-' : utc(notBefore);
  const location = inFile === null ? 'not in the key file' : `in the key file, ${inFile}`;
  return [keyId, purpose, STATES[state](key), from, location];
}

async function rotate({ purpose, json }: RotateOptions): Promise<void> {
  const { path, ...result } = await withKeys(async (deps) => ({
    path: deps.path,
    ...(await rotateKeys(deps, purpose)),
  }));
  if (json) return printJson({ purpose, outcome: 'rotated', ...result, file: path });
  const { keyId, retiring } = result;
  print(`${purpose} key ${keyId} is announced`);
  print(...retiring.map((key) => `${purpose} key ${key.keyId} retires at ${utc(key.effectiveAt)}`));
  const within = purpose === 'receipt' ? '3 minutes, when caches of the key set have it' : '10 seconds';
  print(`Services on this key file sign with it within ${within}.`);
  const until = retiring.length === 0 ? 'to sign with it' : 'before that';
  print(plain(`Other machines need a copy of ${path} ${until}; keep one yourself.`));
}

async function retire(keyId: string, { compromised, since, json }: RetireOptions): Promise<void> {
  if (since !== undefined && compromised === undefined)
    throw new CannotRun(
      '--since is the time since which a key is compromised: it needs --compromised (see --help)',
    );
  const result = await withKeys((deps) => {
    const now = deps.clock.now();
    if (since !== undefined && since > now)
      throw new CannotRun('--since must not be in the future (see --help)');
    return retireKey(deps, keyId, compromised === undefined ? null : (since ?? now));
  });
  if (result.outcome === 'unknown_key') throw new FoundWrong(`the event log has no key ${keyId}`);
  if (result.outcome === 'only_key') throw new FoundWrong(onlyKeyMessage(result.purpose));
  const { outcome, purpose } = result;
  const { notAfter, compromisedAt } = windowOf(result.record);
  if (json) return printJson({ keyId, purpose, outcome, notAfter, compromisedAt });
  if (outcome === 'unchanged') print('The key had ended at that time or earlier: nothing was recorded.');
  if (compromisedAt === null) return print(`${purpose} key ${keyId} signs until ${utc(notAfter)}`);
  print(
    `${purpose} key ${keyId} is compromised since ${second(compromisedAt)}: services on this log no longer sign with it`,
    purpose === 'receipt'
      ? 'Receipts that it signed from then on do not verify, and every audit reports them; earlier ones verify.'
      : 'None of its checkpoints counts any more, whenever it was signed: a checkpoint contains no time.',
  );
}

const onlyKeyMessage = (purpose: KeyPurpose): string =>
  `no other ${purpose} key could sign in its place: run \`relay keys rotate${purpose === 'receipt' ? '' : ` --purpose ${purpose}`}\` first`;
