// The page's texts: never markup, always text; ** marks what is stressed.

/** The element with this id. */
export function element(id) {
  return document.getElementById(id);
}

/** Words into an element; "**" opens and closes what is stressed, and everything is text. */
export function say(id, words) {
  const host = typeof id === "string" ? element(id) : id;
  if (host.dataset.said === words) return;
  host.dataset.said = words;
  host.replaceChildren(
    ...words.split("**").map((part, i) => {
      if (i % 2 === 0) return document.createTextNode(part);
      const strong = document.createElement("strong");
      strong.textContent = part;
      return strong;
    }),
  );
}

/** Words as one argument on a command line. */
export function quoted(words) {
  return /^[\w.,:/@%+-]+$/.test(words) ? words : `'${words.replaceAll("'", "'\\''")}'`;
}

/** Whether a library answers behind this page; the saved file has none. */
export function served() {
  return document.documentElement.dataset.server === "yes";
}

/** What the library answers, or its refusal as an Error with the same sentence. */
export async function ask(what, body) {
  const answer = await fetch(`api/${what}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const values = await answer.json();
  if (!answer.ok) throw new Error(values.error.sentence);
  return values;
}

/** Hand a file to the person. */
export function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
