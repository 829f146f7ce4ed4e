package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Origins says for each key where its value came from: "default", "file NAME:LINE", "env NAME" or "flag --NAME"; of what stands in a
// list or table of the file, "file NAME:LINE:COLUMN".
type Origins map[string]string

// Sources are what a configuration is read from; the zero value of a field means "nothing there".
type Sources struct {
	File     string                            // path of the file; must exist when set
	Fallback string                            // path tried when File is empty; may be missing
	Env      func(string) (string, bool)       // os.LookupEnv in production
	Flags    func(c *Config) map[string]string // applies the flags that were given; returns key → flag name
	Hostname string
	DataDir  string
}

// FromSystem returns the sources of this process: its environment, host name and the user's folders.
func FromSystem() Sources {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	s := Sources{Env: os.LookupEnv, Hostname: host, DataDir: dataDir()}
	if dir, err := os.UserConfigDir(); err == nil {
		s.Fallback = filepath.Join(dir, "loopkeeper", "loopkeeper.yaml")
	}
	return s
}

// Load reads the configuration: flags over environment over file over defaults. Errors are apierr.InvalidArgument and
// name the file, line and key, or the variable or flag.
func Load(s Sources) (Config, Origins, error) {
	c := Default(s.Hostname, s.DataDir)
	from := Origins{}
	for _, row := range settings {
		from[row.key] = "default"
	}
	if err := s.applyFile(&c, from); err != nil {
		return Config{}, nil, err
	}
	if err := s.applyEnv(&c, from); err != nil {
		return Config{}, nil, err
	}
	if s.Flags != nil {
		for key, flag := range s.Flags(&c) {
			from[key] = "flag --" + flag
		}
	}
	c.Worker.Ollama = ollamaURL(c.Worker.Ollama)
	c.HTTP.complete()
	if c.InsecureLAN && from["worker.listen"] == "default" {
		c.Worker.Listen = "0.0.0.0:7701"
	}
	if key, err := validate(&c); err != nil {
		return Config{}, nil, apierr.New(apierr.InvalidArgument, "setting %s (%s): %v", key, from.Of(key), err).
			WithNext("loopkeeper config example", "change or remove that value: the example says what it may be")
	}
	return c, from, nil
}

// Of finds the origin of a key such as "coordinator.workers[2]", or else of the nearest that holds it.
func (o Origins) Of(key string) string {
	nearest := ""
	for k := range o {
		if len(k) > len(nearest) && (key == k || strings.HasPrefix(key, k+"[") || strings.HasPrefix(key, k+".")) {
			nearest = k
		}
	}
	if nearest == "" {
		return "default"
	}
	return o[nearest]
}

func (s Sources) applyFile(c *Config, from Origins) error {
	path := s.File
	if path == "" {
		path = s.Fallback
	}
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && s.File == "" {
		return nil
	}
	if err != nil {
		return apierr.Wrap(err, apierr.NotFound, "read the configuration").WithNext("check the path given with --config")
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	file, err := parser.ParseBytes(data, 0)
	if err == nil {
		dec := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict(), yaml.DisallowUnknownField())
		err = dec.Decode(c)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return apierr.New(apierr.InvalidArgument, "%s:%s", path, yamlFault(file, err)).WithNext("loopkeeper config example")
	}
	each(file, func(key string, v *ast.MappingValueNode) {
		from[key] = fmt.Sprintf("file %s:%d", path, v.Key.GetToken().Position.Line)
		places(v.Value, key, func(part string, line, column int) {
			if part != key {
				from[part] = fmt.Sprintf("file %s:%d:%d", path, line, column)
			}
		})
	})
	return nil
}

func (s Sources) applyEnv(c *Config, from Origins) error {
	if s.Env == nil {
		return nil
	}
	for _, row := range settings {
		for _, name := range row.env {
			v, ok := s.Env(name)
			if !ok || v == "" {
				continue
			}
			if err := row.set(c, v); err != nil {
				return apierr.New(apierr.InvalidArgument, "environment variable %s: %v", name, err)
			}
			from[row.key] = "env " + name
			break
		}
	}
	return nil
}

// ollamaURL makes a URL of what OLLAMA_HOST may hold: "host", "host:port", ":port" or a URL; a wildcard address, which
// only makes sense for a listener, becomes loopback.
func ollamaURL(s string) string {
	s = strings.TrimSpace(s)
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	if err != nil {
		return s
	}
	host, port := u.Hostname(), u.Port()
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "11434"
	}
	u.Host = net.JoinHostPort(host, port)
	return strings.TrimRight(u.String(), "/")
}

// Show lists every setting with its value and origin, in the order of the file.
func Show(c Config, from Origins) []Setting {
	out := make([]Setting, len(settings))
	for i, row := range settings {
		out[i] = Setting{Key: row.key, Value: row.get(&c), Origin: from[row.key]}
	}
	return out
}

// Setting is one row of Show.
type Setting struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`
}

func dataDir() string {
	home, err := os.UserHomeDir()
	switch {
	case os.Getenv("XDG_DATA_HOME") != "":
		return filepath.Join(os.Getenv("XDG_DATA_HOME"), "loopkeeper")
	case err != nil:
		return ""
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support", "loopkeeper")
	case runtime.GOOS == "windows" && os.Getenv("LOCALAPPDATA") != "":
		return filepath.Join(os.Getenv("LOCALAPPDATA"), "loopkeeper")
	default:
		return filepath.Join(home, ".local", "share", "loopkeeper")
	}
}
