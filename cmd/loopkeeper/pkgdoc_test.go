package main_test

import (
	"slices"
	"strings"
	"testing"
)

// A package has one comment in one file, so that a reader finds it and no two of them contradict each other.
func TestEveryPackageHasOneComment(t *testing.T) {
	packages := map[string][]string{} // folder -> the files with a package comment
	for _, file := range sourceFiles(t) {
		if file.test {
			continue
		}
		files := packages[file.folder]
		if file.syntax.Doc != nil && !file.generated() {
			files = append(files, file.path)
		}
		packages[file.folder] = files
	}
	for folder, files := range packages {
		slices.Sort(files)
		switch len(files) {
		case 0:
			t.Errorf("%s: no package comment", folder)
		case 1:
		default:
			t.Errorf("%s: %d package comments: %s", folder, len(files), strings.Join(files, ", "))
		}
	}
}
