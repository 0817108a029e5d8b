// Exit code and message of a command that threw.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CannotRun, exitOf, FoundWrong, oneLine } from '#src/cli/exit.ts';

describe('a command that threw', () => {
  test('exits with 1 only if it found a problem', () => {
    assert.deepEqual(
      [new FoundWrong('x'), new CannotRun('x'), new Error('x'), 'x', undefined].map(exitOf),
      [1, 2, 2, 2, 2],
    );
  });

  test('prints one line, also if the message has several', () => {
    const lines: readonly (readonly [unknown, string])[] = [
      [new Error('one'), 'one'],
      [new Error('wrong:\n  PORT is\n\n  HOST is\n'), 'wrong: PORT is; HOST is'],
      ['thrown text', 'thrown text'],
      [new Error(''), 'unknown failure'],
    ];
    for (const [thrown, line] of lines) assert.equal(oneLine(thrown), line);
  });
});
