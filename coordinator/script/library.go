package script

import "embed"

// The library that scripts import as "loopkeeper". It is bundled into every program, so that a run keeps the library it
// started with.
//
//go:embed lib/*.ts
var library embed.FS

// Types is the text of loopkeeper.d.ts, the library's types for editors and for tsc.
//
//go:embed loopkeeper.d.ts
var Types string
