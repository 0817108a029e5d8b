// The script of the pages: each page has one of these elements.

import { element, part } from './dom.ts';
import { checkProofPage } from './proof.ts';
import { offerVerification } from './verify.ts';

const section = document.getElementById('own-check');
const form = document.getElementById('verify-form');
const filter = document.getElementById('filter');
offerCopies();
if (filter instanceof HTMLInputElement) offerFilter(filter);
if (section !== null) void checkProofPage(section);
if (form instanceof HTMLFormElement) offerVerification(form);

// ── snippets ─────────────────────────────────────────────────────────────────────────────────────────
// Copy buttons beside the snippets of a page, and the filter of the operations on the docs page.

/** A button for each `pre` that offers its text; none where the browser has no clipboard (a page without TLS). */
function offerCopies(): void {
  if (!('clipboard' in navigator)) return;
  for (const snippet of document.querySelectorAll<HTMLElement>('pre[data-copy]')) {
    const button = element('button', { type: 'button', class: 'copy' }, 'Copy');
    button.addEventListener('click', async () => {
      const copied = await navigator.clipboard.writeText(snippet.textContent ?? '').then(
        () => 'Copied',
        () => 'Not copied: select the text',
      );
      button.textContent = copied;
    });
    const around = element('div', { class: 'copyable' });
    snippet.replaceWith(around);
    around.append(button, snippet);
  }
}

/** Shows the operations whose text contains every word of the field. */
function offerFilter(field: HTMLInputElement): void {
  const shown = part('filter-state', HTMLElement);
  const operations = [...document.querySelectorAll<HTMLElement>('.operation')].map((article) => ({
    parts: [
      article,
      document.querySelector<HTMLElement>(`.contents a[href="#${article.dataset.operation}"]`)?.parentElement,
    ],
    text: (article.textContent ?? '').toLowerCase(),
  }));
  const groups = document.querySelectorAll<HTMLElement>('.docs section');
  field.addEventListener('input', () => {
    const words = field.value.toLowerCase().split(/\s+/);
    let matching = 0;
    for (const { parts, text } of operations) {
      const matches = words.every((word) => text.includes(word));
      if (matches) matching++;
      for (const one of parts) if (one) one.hidden = !matches;
    }
    for (const group of groups)
      group.hidden =
        group.querySelector('.operation') !== null &&
        group.querySelector('.operation:not([hidden])') === null;
    shown.textContent = `${matching} of ${operations.length} operations`;
  });
  part('filter-field', HTMLElement).hidden = false;
}
