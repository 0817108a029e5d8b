// An archive in the ustar format (POSIX.1-1988), as npm reads it. The same files are the same bytes at any time.

const BLOCK = 512;
/** As `npm pack` writes it: 26 October 1985. */
const MODIFIED = 499_162_500;

/** `name`: ASCII, at most 99 characters. */
export type TarFile = { readonly name: string; readonly content: Uint8Array };

export function tarOf(files: readonly TarFile[]): Uint8Array<ArrayBuffer> {
  const sizes = files.map(({ content }) => BLOCK + Math.ceil(content.length / BLOCK) * BLOCK);
  const archive = new Uint8Array(sizes.reduce((sum, size) => sum + size, 2 * BLOCK));
  let at = 0;
  for (const [index, file] of files.entries()) {
    archive.set(headerOf(file), at);
    archive.set(file.content, at + BLOCK);
    at += sizes[index] ?? 0;
  }
  return archive;
}

function headerOf({ name, content }: TarFile): Uint8Array {
  const header = new Uint8Array(BLOCK);
  const put = (text: string, at: number) => header.set(new TextEncoder().encode(text), at);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  put(name, 0);
  put(octal(0o644, 7), 100);
  put(octal(0, 7), 108);
  put(octal(0, 7), 116);
  put(octal(content.length, 11), 124);
  put(octal(MODIFIED, 11), 136);
  // The checksum is of the header with blanks in its place.
  put(' '.repeat(8), 148);
  put('0', 156);
  put('ustar\x0000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  put(`${octal(sum, 6)} `, 148);
  return header;
}
