package script

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Bundle makes a Program of the TypeScript or JavaScript file entry, its local imports and the loopkeeper library.
// Files are read from the operating system. What does not parse or resolve is a *Failure of kind Syntax; an entry that
// cannot be read is an *apierr.Error of code NotFound.
func Bundle(entry string) (Program, error) {
	return bundle(func(name string) ([]byte, error) { return os.ReadFile(filepath.FromSlash(name)) }, entry)
}

// BundleFS is Bundle for a file system such as an embedded one.
func BundleFS(fsys fs.FS, entry string) (Program, error) {
	return bundle(func(name string) ([]byte, error) { return fs.ReadFile(fsys, name) }, entry)
}

// BundleText is Bundle for a program in one text without local imports; name is what errors call it.
func BundleText(name, text string) (Program, error) {
	return bundle(func(asked string) ([]byte, error) {
		if asked == name {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}, name)
}

func bundle(read readFile, entry string) (Program, error) {
	text, err := read(entry)
	if err != nil {
		return Program{}, apierr.Wrap(err, apierr.NotFound, "read the script %s", entry)
	}
	name := slashed(entry)
	result := api.Build(api.BuildOptions{
		Stdin:       &api.StdinOptions{Contents: stub(name, docComment(text)), Sourcefile: stubName, Loader: api.LoaderJS},
		Bundle:      true,
		Format:      api.FormatIIFE,
		GlobalName:  programGlobal,
		Platform:    api.PlatformNeutral,
		Target:      api.ES2017,
		Supported:   map[string]bool{"bigint": true, "dynamic-import": false, "object-rest-spread": true},
		Charset:     api.CharsetUTF8,
		KeepNames:   true,
		Outfile:     "program.js",
		Sourcemap:   api.SourceMapExternal,
		TsconfigRaw: `{"compilerOptions":{"strict":true}}`,
		LogLevel:    api.LogLevelSilent,
		Plugins:     []api.Plugin{resolver(read)},
	})
	if len(result.Errors) > 0 {
		return Program{}, syntaxFailure(result.Errors)
	}
	program := Program{Name: path.Base(name)}
	for _, file := range result.OutputFiles {
		if strings.HasSuffix(file.Path, ".map") {
			program.SourceMap, err = plainSources(file.Contents)
		} else {
			program.Code = file.Contents
		}
	}
	return program, err
}

// stubName is the generated entry point. It loads the library first, so that the library takes the host's one function
// away before the user's code can see it.
const stubName = libraryNamespace + ":entry"

func stub(name, description string) string {
	return fmt.Sprintf("import { start } from %q;\nimport * as workflow from %q;\nexport const { version, describe, run, check } = start(workflow, %s, %s);\n",
		runtimeModule, entryPrefix+name, quoted(name), quoted(description))
}

func quoted(s string) string {
	text, _ := json.Marshal(s) // a string always marshals
	return string(text)
}

var leadingComment = regexp.MustCompile(`^\s*(?://[^\n]*\n\s*)*/\*\*([\s\S]*?)\*/`)

// docComment returns the first line of the doc comment that a file begins with. It is read here because bundling drops
// comments.
func docComment(text []byte) string {
	found := leadingComment.FindSubmatch(text)
	if found == nil {
		return ""
	}
	for line := range strings.Lines(string(found[1])) {
		if line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "*")); line != "" {
			return line
		}
	}
	return ""
}

// syntaxFailure turns the bundler's errors into one failure: the first is its place and message, all are its stack.
func syntaxFailure(errors []api.Message) *Failure {
	for i, e := range errors {
		if e.Location != nil {
			errors[i].Location.File = plainSource(e.Location.File)
		}
	}
	first := errors[0]
	failure := &Failure{Kind: Syntax, Message: first.Text}
	if n := len(errors) - 1; n > 0 {
		failure.Message += fmt.Sprintf(" (and %d more)", n)
	}
	if at := first.Location; at != nil {
		failure.File, failure.Line, failure.Column = at.File, at.Line, at.Column+1
	}
	failure.Stack = strings.Join(api.FormatMessages(errors, api.FormatMessagesOptions{Kind: api.ErrorMessage}), "")
	return failure
}

// plainSources gives the files in a source map the names that people know: a user's file as it was named to Bundle.
func plainSources(sourceMap []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	var sources []string
	if err := json.Unmarshal(sourceMap, &fields); err != nil {
		return nil, fmt.Errorf("read the source map: %w", err)
	}
	if err := json.Unmarshal(fields["sources"], &sources); err != nil {
		return nil, fmt.Errorf("read the source map's sources: %w", err)
	}
	for i, source := range sources {
		sources[i] = plainSource(source)
	}
	var err error
	if fields["sources"], err = json.Marshal(sources); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}
