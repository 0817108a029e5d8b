// relay keys rotate and retire: a fresh key in the place of the old one, and the end of a key.
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { KeyPurpose } from '#src/domain/signing-keys/events.ts';
import {
  type Retirement,
  type Rotation,
  retireKey,
  rotateKeys,
  windowOf,
} from '#src/usecases/signing-keys/change-keys.ts';
import { CannotRun, type End, EXIT, FoundWrong } from './exit.ts';
import { told, toldExactly, withKeys } from './keys-context.ts';
import { plain, print, printJson } from './terminal.ts';

type RotateOptions = { readonly purpose: KeyPurpose; readonly grace: number; readonly json?: true };
type RetireOptions = { readonly compromised?: true; readonly since?: number; readonly json?: true };

const GRACE_MINUTES = { min: 10, max: 525_600, default: 10 };
const MINUTE_MS = 60_000;

const ROTATE_HELP = `
A fresh key is written to the key file, then announced in the event log together with the end of the old ones, which
are then marked in the file. Services on this file and log switch by themselves within seconds: none is restarted.
Interrupted, run it again: it completes what it had begun.
On several machines run it on one, and copy its key file to the others within the grace: until then they sign with the
old key, after it they sign nothing. The secret in the file is never changed. --purpose checkpoint gives a key file from
before there was a transparency log its first checkpoint key.`;

const RETIRE_HELP = `
The key signs nothing more from ten minutes on; what it signed until then verifies for ever. --compromised: it signs
nothing more as soon as services read of it, within seconds. A receipt that it signed from --since on (default: now) does
not verify any more, whoever signed it, and "relay audit" names it for good; an earlier one still verifies. Of a
compromised checkpoint key no checkpoint counts, because none tells its time. This is recorded in the event log and cannot
be taken back; a second time it can only close the key earlier.
The only key that can sign is not retired: "relay keys rotate" comes first. Before an id that begins with - write --.`;

export function addKeysChange(keys: Command, end: End): void {
  const purpose = new Option('--purpose <purpose>', 'what the key signs').choices(['receipt', 'checkpoint']);
  keys
    .command('rotate')
    .description('put a fresh key in the place of the one that signs')
    .addOption(purpose.default('receipt'))
    .option('--grace <minutes>', 'how long the old key stays valid', readGrace, GRACE_MINUTES.default)
    .option('--json', 'for machines')
    .addHelpText('after', ROTATE_HELP)
    .action(async (options: RotateOptions) => {
      await rotate(options);
      end(EXIT.good);
    });
  keys
    .command('retire')
    .description('end a key')
    .argument('<key>', 'its id, as "relay keys list" shows it', readKeyId)
    .option('--compromised', 'somebody else may have it')
    .option('--since <date>', 'from when on, RFC 3339: 2026-01-31 or 2026-01-31T12:00:00Z', readDate)
    .option('--json', 'for machines')
    .addHelpText('after', RETIRE_HELP)
    .action(async (keyId: string, options: RetireOptions) => {
      await retire(keyId, options);
      end(EXIT.good);
    });
}

function readGrace(text: string): number {
  const minutes = Number(text);
  if (!/^\d+$/.test(text) || minutes < GRACE_MINUTES.min || minutes > GRACE_MINUTES.max)
    throw new InvalidArgumentError(`It is ${GRACE_MINUTES.min} to ${GRACE_MINUTES.max} whole minutes.`);
  return minutes;
}

function readKeyId(text: string): string {
  if (!/^[A-Za-z0-9_-]{43}$/.test(text)) throw new InvalidArgumentError('It is 43 characters long.');
  return text;
}

/** Unix ms. A date alone is its beginning in UTC; a time without a zone would mean another one on each machine. */
function readDate(text: string): number {
  const isDate = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text);
  const ms = isDate ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw new InvalidArgumentError('It is a date, or a time with its zone.');
  return ms;
}

async function rotate({ purpose, grace, json }: RotateOptions): Promise<void> {
  const { path, ...result } = await withKeys(async (office) => ({
    path: office.path,
    ...(await rotateKeys(office, { purpose, graceMs: grace * MINUTE_MS })),
  }));
  if (json) return printJson({ purpose, ...result, file: path });
  print(...rotationLines(purpose, result, path));
}

function rotationLines(purpose: KeyPurpose, result: Rotation, path: string): string[] {
  const { outcome, keyId, retiring } = result;
  const old = retiring.map((key) => `${purpose} key ${key.keyId} retires at ${told(key.effectiveAt)}`);
  if (outcome === 'completed')
    return [
      'An earlier rotation is now complete.',
      `${purpose} key ${keyId} signs`,
      ...old,
      'To rotate anew, run this again.',
    ];
  return [
    `${purpose} key ${keyId} signs from now on`,
    ...old,
    'Services on this key file switch within seconds.',
    plain(
      `Other machines need a copy of ${path} ${old.length === 0 ? 'to sign with it' : 'before that'}; keep one yourself.`,
    ),
  ];
}

async function retire(keyId: string, { compromised, since, json }: RetireOptions): Promise<void> {
  if (since !== undefined && compromised === undefined)
    throw new CannotRun(
      '--since says from when on a key is compromised: it needs --compromised (see --help)',
    );
  const result = await withKeys((office) => {
    const now = office.clock.now();
    if (since !== undefined && since > now) throw new CannotRun('--since lies in the future (see --help)');
    return retireKey(office, keyId, compromised === undefined ? null : (since ?? now));
  });
  if (result.outcome === 'unknown_key') throw new FoundWrong(`the event log knows no key ${keyId}`);
  if (result.outcome === 'only_key') throw new FoundWrong(onlyKey(result.purpose));
  if (json) printJson(retirementOf(keyId, result));
  else print(...retirementLines(keyId, result));
}

const onlyKey = (purpose: KeyPurpose): string =>
  `no other ${purpose} key could sign in its place: run \`relay keys rotate${purpose === 'receipt' ? '' : ` --purpose ${purpose}`}\` first`;

type Retired = Extract<Retirement, { readonly record: unknown }>;

function retirementOf(keyId: string, { outcome, purpose, record }: Retired) {
  const { notAfter, compromisedAt } = windowOf(record);
  return { keyId, purpose, outcome, notAfter, compromisedAt };
}

function retirementLines(keyId: string, result: Retired): string[] {
  const { outcome, purpose, notAfter, compromisedAt } = retirementOf(keyId, result);
  const unchanged = outcome === 'unchanged' ? ['It had ended as early already: nothing was recorded.'] : [];
  if (compromisedAt === null)
    return [...unchanged, `${purpose} key ${keyId} signs until ${told(notAfter ?? '')}`];
  const since = toldExactly(compromisedAt);
  return [
    ...unchanged,
    `${purpose} key ${keyId} is compromised since ${since}: services on this log sign nothing more with it`,
    purpose === 'receipt'
      ? `A receipt of its from then on does not verify, whoever signed it, and every audit names it; earlier ones verify.`
      : `No checkpoint of its counts any more, whenever it was signed: a note tells no time.`,
  ];
}
