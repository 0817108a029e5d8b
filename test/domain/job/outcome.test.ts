// Status to category.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { categoryOfStatus, isSuccess } from '#src/domain/job/retry.ts';

test('every status from 100 to 999 has its one category', () => {
  const expected = (status: number) => {
    if (status < 200 || status > 599) return 'protocol_error';
    if (status === 429) return 'target_rate_limited';
    return [null, 'target_redirect', 'target_client_error', 'target_server_error'][
      Math.floor(status / 100) - 2
    ];
  };
  for (let status = 100; status <= 999; status++)
    assert.equal(categoryOfStatus(status), expected(status), `${status}`);
});

test('2xx and nothing else is a success', () => {
  assert.deepEqual([199, 200, 204, 299, 300].map(isSuccess), [false, true, true, true, false]);
});
