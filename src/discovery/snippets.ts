// The code snippets for readers, by group. Each is whole and runs as it stands; a test runs every one of them.
import type { Facts } from './facts.ts';
import { paidCall } from './snippets/paid-call.ts';

/** `language`: `shell`, `typescript`, `python` or `json`. */
export type Snippet = {
  readonly id: string;
  readonly title: string;
  readonly language: 'shell' | 'typescript' | 'python' | 'json';
  readonly description: string;
  readonly code: string;
};

export type SnippetGroup = {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly snippets: readonly Snippet[];
};

export function snippetGroups(facts: Facts): readonly SnippetGroup[] {
  return [paidCall(facts)];
}

/** The snippet of that id, which must be one. */
export function snippet(facts: Facts, id: string): Snippet {
  const found = snippetGroups(facts)
    .flatMap(({ snippets }) => snippets)
    .find((one) => one.id === id);
  if (found === undefined) throw new Error(`there is no snippet ${id}`);
  return found;
}
