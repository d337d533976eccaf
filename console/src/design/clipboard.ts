import { toast } from "./toasts.ts";

/** Copy a text, and say so. */
export async function copy(text: string): Promise<void> {
  if ((await byClipboard(text)) || bySelection(text)) {
    toast("Copied.", "good");
  } else {
    toast("The browser blocks copying on this page. Select the text and copy it yourself.", "bad");
  }
}

async function byClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // it is there on TLS and on this machine alone
  }
}

function bySelection(text: string): boolean {
  const field = document.createElement("textarea");
  const focused = document.activeElement;
  field.value = text;
  field.setAttribute("readonly", "");
  field.className = "hidden-label";
  document.body.append(field);
  field.select();
  try {
    return document.execCommand("copy"); // old, and everywhere
  } finally {
    field.remove();
    (focused as HTMLElement | null)?.focus();
  }
}
