// The shape of a snippet, wherever one is told.
import { Type } from '@sinclair/typebox';
import { Closed } from './schema-parts.ts';

export const SnippetShown = Closed({
  id: Type.String(),
  title: Type.String(),
  language: Type.Union(['shell', 'typescript', 'python', 'json'].map((name) => Type.Literal(name))),
  description: Type.String(),
  code: Type.String(),
});
