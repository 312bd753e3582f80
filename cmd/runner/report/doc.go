// Package report makes one page of what the host remembers about tenants: pairs by kind and state, decisions over time,
// and what waits for a person, with the command that settles it. The page is HTML or Markdown, needs no network and no
// script, and says the same in both forms.
//
// It is pure: data and a clock in, bytes out, the same for the same input. It reads nothing by itself, decides nothing
// about objects, and trusts no text: names, messages and causes come from tenants, so everything that is shown goes through
// record.Plain and the escaping of its form, and a command is printed only where no part of it means anything to a shell.
package report
