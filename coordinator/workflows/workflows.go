// Package workflows holds the built-in workflows. Each is one TypeScript file, a page at most, that uses the library as a
// user's own script does; what does not fit is in the folder of its name.
package workflows

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

//go:embed *.ts ask map-reduce pipeline plan
var files embed.FS

// bundled makes all programs at the first use. The sources are embedded, so that failing is a fault of the build, which
// the tests catch.
var bundled = sync.OnceValue(func() map[string]script.Program {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("read the built-in workflows: %v", err))
	}
	programs := map[string]script.Program{}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		program, err := script.BundleFS(files, entry.Name())
		if err != nil {
			panic(fmt.Sprintf("bundle the built-in workflow %s: %v", entry.Name(), err))
		}
		program.Name = strings.TrimSuffix(entry.Name(), ".ts")
		programs[program.Name] = program
	}
	return programs
})

// List returns the names of the built-in workflows, sorted.
func List() []string {
	var names []string
	for name := range bundled() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Lookup returns the built-in workflow of that name.
func Lookup(name string) (script.Program, bool) {
	program, ok := bundled()[name]
	return program, ok
}
