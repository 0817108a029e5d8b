// The colours of the pages' style sheet, read from the file itself.
import { readFileSync } from 'node:fs';
import { rootPath } from './runtime.ts';

const [light = '', dark = ''] = readFileSync(`${rootPath}/src/http/pages/page.css`, 'utf8').split(
  '@media (prefers-color-scheme: dark)',
);

const coloursOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...text.matchAll(/--([a-z]+): (#[0-9a-f]{6});/g)].map(([, name = '', value]) => [name, value ?? '']),
  );

/** By scheme and name: `PALETTE.light.ink`. */
export const PALETTE = { light: coloursOf(light), dark: coloursOf(dark) } as const;
