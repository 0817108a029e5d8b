// How a command that threw ends, and what it says.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CannotRun, exitOf, FoundWrong, oneLine } from '#src/cli/exit.ts';

describe('a command that threw', () => {
  test('ends with 1 only where it found something wrong', () => {
    assert.deepEqual(
      [new FoundWrong('x'), new CannotRun('x'), new Error('x'), 'x', undefined].map(exitOf),
      [1, 2, 2, 2, 2],
    );
  });

  test('says one line, however many the message has', () => {
    const lines: readonly (readonly [unknown, string])[] = [
      [new Error('one'), 'one'],
      [new Error('wrong:\n  PORT is\n\n  HOST is\n'), 'wrong: PORT is; HOST is'],
      ['thrown text', 'thrown text'],
      [new Error(''), 'unknown failure'],
    ];
    for (const [thrown, line] of lines) assert.equal(oneLine(thrown), line);
  });
});
