// relay keys list: every key that the log knows, its window, and whether its private half is at hand.
import type { Command } from 'commander';
import { type ListedKey, listKeys } from '#src/usecases/signing-keys/change-keys.ts';
import { type End, EXIT } from './exit.ts';
import { told, toldExactly, withKeys } from './keys-context.ts';
import { paint, plain, print, printJson } from './terminal.ts';

const HELP = `
States:
  active        signs: receipts, or the checkpoints of the transparency log
  retiring      still signs where its successor is not at hand, until the time shown
  retired       signs nothing more; what it signed within its window verifies for ever
  compromised   it signs nothing more: a receipt from the time shown on does not verify, nor does any checkpoint
  unannounced   in the key file, and not in the log: it signs nothing before "relay keys rotate" announces it
The log of DATA_DIR, or of EVENTSTORE_URL, is read, also while a service runs on it. Nothing is written, and no private
part is shown.`;

export function addKeysList(keys: Command, end: End): void {
  keys
    .command('list')
    .description('all keys, their windows, and which of them this key file holds')
    .option('--json', 'for machines: an array')
    .addHelpText('after', HELP)
    .action(async (options: { readonly json?: true }) => {
      const rows = await withKeys((office) => listKeys(office, office.store.read().keys));
      if (options.json) printJson(rows);
      else print(...linesOf(rows));
      end(EXIT.good);
    });
}

const TITLES = ['key', 'purpose', 'state', 'from', 'private half'];

const STATES: Record<ListedKey['state'], (key: ListedKey) => string> = {
  active: () => 'active',
  retiring: ({ notAfter }) => `retiring until ${told(notAfter ?? '')}`,
  retired: ({ notAfter }) => `retired ${told(notAfter ?? '')}`,
  compromised: ({ compromisedAt }) => `compromised since ${toldExactly(compromisedAt ?? '')}`,
  unannounced: () => 'unannounced',
};

function cells(key: ListedKey): string[] {
  const { keyId, purpose, state, notBefore, inFile } = key;
  const from = notBefore === null ? '-' : told(notBefore);
  const held = inFile === null ? 'not in the key file' : `in the key file, ${inFile}`;
  return [keyId, purpose, STATES[state](key), from, held].map(plain);
}

function linesOf(rows: readonly ListedKey[]): string[] {
  const lines = [TITLES, ...rows.map(cells)];
  const widths = TITLES.map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0)));
  const [titles = '', ...rest] = lines.map((line) =>
    line
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return [paint('bold', titles), ...rest];
}
