// relay serve: the service, stopped cleanly by the signals of a supervisor and of a terminal.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { startCli } from '#test/support/process/cli-process.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('serve-test');

const LISTENING = /"baseUrl":"(http:\/\/127\.0\.0\.1:\d+)"/;

describe('relay serve', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`answers, and exits with 0 on ${signal}`, async () => {
      // Read models that are unavailable take no time to open.
      const DATABASE_URL = 'postgres://user@127.0.0.1:1/none';
      const env = { PORT: '0', DATA_DIR: join(folder, 'data'), DATABASE_URL };
      const cli = startCli(['serve'], { env });
      await cli.until((stdout) => LISTENING.test(stdout));
      const url = LISTENING.exec(cli.stdout())?.[1] ?? '';
      assert.equal((await fetch(`${url}/health`)).status, 200);
      cli.signal(signal);
      const { code, stderr } = await cli.ended;
      assert.deepEqual([code, stderr], [0, '']);
      await assert.rejects(fetch(`${url}/health`));
    });
  }

  test('a configured key file that does not exist: cannot run, and the error names the command that creates one', async () => {
    const env = {
      PORT: '0',
      DATA_DIR: join(folder, 'keyless'),
      SIGNING_KEYS_FILE: join(folder, 'none.json'),
    };
    const { code, stderr } = await startCli(['serve'], { env }).ended;
    assert.equal(code, 2);
    assert.match(stderr, /SIGNING_KEYS_FILE names a missing file, [^\n]+relay keys init/);
  });
});
