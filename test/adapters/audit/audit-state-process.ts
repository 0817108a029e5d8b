// A run of an audit that has written to its state, prints a line, and never ends: for a test that kills it.
import process from 'node:process';
import { sqliteAuditState } from '#src/adapters/audit/state-sqlite.ts';

const state = sqliteAuditState<string>(process.argv[2] ?? '');
// More than the buffer and SQLite's cache keep.
for (let n = 0; n < 150_000; n++) state.put(`k ${n}`, 'changed '.repeat(40));
process.stdout.write('written\n');
setInterval(() => state.get('k 1'), 60_000);
