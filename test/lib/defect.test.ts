import { equal } from 'node:assert/strict';
import { test } from 'node:test';
import { isDefect } from '#src/lib/defect.ts';

/** As drizzle wraps what the driver threw. */
const query = (cause: unknown) => new Error('Failed query: select 1', { cause });
const sqlState = (code: string) => query(Object.assign(new Error('refused'), { code }));

test('defect: a wrong statement and an error of our code are defects; whatever the store may recover from is not', () => {
  for (const code of ['42601', '42703', '42883', '22P02', '23505', '21000'])
    equal(isDefect(sqlState(code)), true, code);
  for (const code of [
    '42501',
    '42P01',
    '3F000',
    '08006',
    '53300',
    '57P01',
    '40001',
    'XX001',
    '25006',
    '0A000',
  ])
    equal(isDefect(sqlState(code)), false, code);
  equal(isDefect(new TypeError('undefined is not an object')), true);
  equal(isDefect(query(new TypeError('the driver lost its socket'))), false);
  equal(isDefect(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })), false);
  equal(isDefect(query(new Error('PGlite is closed'))), false);
});
