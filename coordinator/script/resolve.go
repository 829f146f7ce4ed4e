package script

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// readFile reads a file by its name with slashes, whatever the operating system separates by.
type readFile func(name string) ([]byte, error)

const (
	libraryModule    = "loopkeeper"         // what a script imports
	runtimeModule    = "loopkeeper:runtime" // what the generated entry imports
	entryPrefix      = "entry:"
	userNamespace    = "user"
	libraryNamespace = "loopkeeper"
)

// extensions are tried in this order for an import without one.
var extensions = []string{"", ".ts", ".js", ".mts", ".mjs", ".json", "/index.ts", "/index.js"}

var loaders = map[string]api.Loader{
	".ts": api.LoaderTS, ".mts": api.LoaderTS, ".js": api.LoaderJS, ".mjs": api.LoaderJS, ".json": api.LoaderJSON,
}

// resolver decides what an import means: "loopkeeper" is the embedded library, a relative path is a file beside the
// importer, and everything else is refused. Nothing is looked up in node_modules or a tsconfig, so a bundle depends on
// the user's own files only.
func resolver(read readFile) api.Plugin {
	return api.Plugin{Name: "loopkeeper", Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			return resolve(read, args)
		})
		build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: libraryNamespace}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
			return loaded(library.ReadFile("lib/" + args.Path))("x.ts")
		})
		build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: userNamespace}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
			return loaded(read(args.Path))(args.Path)
		})
	}}
}

func loaded(text []byte, err error) func(name string) (api.OnLoadResult, error) {
	return func(name string) (api.OnLoadResult, error) {
		if err != nil {
			return api.OnLoadResult{}, err
		}
		contents := string(text)
		loader, known := loaders[path.Ext(name)]
		if !known {
			loader = api.LoaderTS
		}
		return api.OnLoadResult{Contents: &contents, Loader: loader}, nil
	}
}

func resolve(read readFile, args api.OnResolveArgs) (api.OnResolveResult, error) {
	inLibrary := args.Namespace == libraryNamespace
	fromStub := !inLibrary && args.Namespace != userNamespace
	switch {
	case args.Path == libraryModule:
		return api.OnResolveResult{Path: "index.ts", Namespace: libraryNamespace, SideEffects: api.SideEffectsTrue}, nil
	case fromStub && args.Path == runtimeModule:
		return api.OnResolveResult{Path: "runtime.ts", Namespace: libraryNamespace}, nil
	case fromStub && strings.HasPrefix(args.Path, entryPrefix):
		return api.OnResolveResult{Path: args.Path[len(entryPrefix):], Namespace: userNamespace}, nil
	case inLibrary && relative(args.Path):
		return api.OnResolveResult{Path: path.Join(path.Dir(args.Importer), args.Path) + ".ts", Namespace: libraryNamespace}, nil
	case relative(args.Path):
		return resolveLocal(read, args)
	default:
		return api.OnResolveResult{}, fmt.Errorf("cannot import %q: a workflow can import \"loopkeeper\" and local files "+
			"(\"./name\") only; it has no packages, no files and no network", args.Path)
	}
}

func resolveLocal(read readFile, args api.OnResolveArgs) (api.OnResolveResult, error) {
	wanted := path.Join(path.Dir(args.Importer), args.Path)
	for _, extension := range extensions {
		name := wanted + extension
		if _, known := loaders[path.Ext(name)]; !known {
			continue
		}
		_, err := read(name)
		if err == nil {
			return api.OnResolveResult{Path: name, Namespace: userNamespace}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return api.OnResolveResult{}, fmt.Errorf("cannot import %q: %w", args.Path, err)
		}
	}
	return api.OnResolveResult{}, fmt.Errorf("cannot import %q: there is no %s with an ending .ts, .js, .mts, .mjs or .json", args.Path, wanted)
}

func relative(name string) bool {
	return strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") || path.IsAbs(name)
}

func slashed(name string) string { return path.Clean(filepath.ToSlash(name)) }

// plainSource drops the user namespace from a bundler's file name; the library's files keep theirs.
func plainSource(name string) string { return strings.TrimPrefix(name, userNamespace+":") }
