package script_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

// strict is a file system that is asked by names with slashes only, as fs.FS wants them on every operating system.
type strict struct {
	fstest.MapFS
	t *testing.T
}

func (s strict) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) || strings.ContainsRune(name, '\\') {
		s.t.Errorf("it is asked for %q", name)
	}
	return s.MapFS.Open(name)
}

func TestAFileSystemIsAskedByNamesWithSlashes(t *testing.T) {
	files := strict{fstest.MapFS{
		"flow.ts":         {Data: []byte(`import { n } from "./parts/n"; export default async function flow() { return n; }`)},
		"parts/n.ts":      {Data: []byte(`export { n } from "./deep/m";`)},
		"parts/deep/m.ts": {Data: []byte(`export const n = 7;`)},
	}, t}
	p, err := script.BundleFS(files, "flow.ts")
	if err != nil || !strings.Contains(string(p.Code), "7") {
		t.Fatalf("%v", err)
	}
}
