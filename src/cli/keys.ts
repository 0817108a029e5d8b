// relay keys: the signing keys, in their file and in the event log.
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { type End, EXIT } from './exit.ts';
import { addKeysChange } from './keys-change.ts';
import { addKeysList } from './keys-list.ts';
import { print, printJson } from './terminal.ts';

type InitOptions = { readonly file?: string; readonly json?: true };

export function addKeys(program: Command, end: End): void {
  const keys = program.command('keys').description('signing keys');
  addKeysInit(keys, end);
  addKeysList(keys, end);
  addKeysChange(keys, end);
}

function addKeysInit(keys: Command, end: End): void {
  keys
    .command('init')
    .description('make a file with fresh signing keys and a fresh secret, readable by its owner alone')
    .option('--file <file>', 'where to make it (default: SIGNING_KEYS_FILE, or else keys.json in DATA_DIR)')
    .option('--json', 'for machines')
    .addHelpText('after', '\nA file that is there already is never touched.')
    .action(async (options: InitOptions) => {
      await init(options);
      end(EXIT.good);
    });
}

async function init(options: InitOptions): Promise<void> {
  const path = options.file === undefined ? readConfig().keyFile.path : resolve(options.file);
  const { createKeyFile, readKeyFile } = await import('#src/app/service.ts');
  createKeyFile(path);
  const { keys } = readKeyFile(path);
  if (options.json) return printJson({ file: path, keyIds: keys.map(({ keyId }) => keyId) });
  print(...keys.map(({ purpose, keyId }) => `${purpose} key ${keyId}`), `in ${path}`);
  print('Keep a copy of this file: receipts are signed with it, and the log knows its secret.');
}
