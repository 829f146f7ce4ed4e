package source

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// FuzzOpen holds that no index of a recording breaks who opens it or asks what it names.
func FuzzOpen(f *testing.F) {
	f.Add(`{"version":1,"os":"linux","arch":"amd64","files":{"proc/meminfo":[{"text":"index.json"},{"error":{"kinds":["permission"],"text":"no"}}],"a":[]},` +
		`"folders":{"sys":{"entries":{"class":"folder"}},"x":{"error":{"text":"gone"}}},"links":{"sys/link":"class"},` +
		`"commands":[{"name":"smi","args":["-q"],"answers":[{"stdout":"index.json","exit_code":3}]}],"calls":[{"name":"host","args":[],"answers":[{"json":{"a":1}}]}]}`)
	f.Add(`{"version":1,"files":{"":[],"/":[],"..":[],"a/b":[],"a":[]},"folders":{"a/b/c":{}}}`)
	f.Add(`{"version":1,"commands":[{}],"calls":[{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, indexName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Open(dir)
		if err != nil {
			return
		}
		_ = fs.WalkDir(m.Files, ".", func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				_, _ = fs.ReadFile(m.Files, name)
				_, _ = fs.ReadLink(m.Files, name)
			}
			return nil
		})
		r := m.Commands.(replayRunner)
		for _, c := range r.index.Commands {
			_, _ = m.Commands.Run(t.Context(), c.Name, c.Args...)
		}
		for _, c := range r.index.Calls {
			_, _ = m.Calls.Call(t.Context(), c.Name, c.Args...)
		}
	})
}
