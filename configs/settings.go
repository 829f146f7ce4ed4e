package configs

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// setting is one row of the table of all settings: its key in the file, its environment variables (the first that is set
// wins) and how its text is read into a Config. Lists and maps have no environment variable.
type setting struct {
	key string
	env []string
	set func(*Config, string) error
	get func(*Config) any
}

// settings lists every setting once; the file, the environment and `config show` all follow it.
var settings = []setting{
	text("fleet", func(c *Config) *string { return &c.Fleet }, "LOOPKEEPER_FLEET"),
	text("name", func(c *Config) *string { return &c.Name }, "LOOPKEEPER_NAME"),
	text("data_dir", func(c *Config) *string { return &c.DataDir }, "LOOPKEEPER_DATA_DIR"),
	text("log_level", func(c *Config) *string { return &c.LogLevel }, "LOOPKEEPER_LOG_LEVEL"),
	yes("insecure_lan", func(c *Config) *bool { return &c.InsecureLAN }, "LOOPKEEPER_INSECURE_LAN"),
	text("coordinator.listen", func(c *Config) *string { return &c.Coordinator.Listen }, "LOOPKEEPER_COORDINATOR"),
	list("coordinator.workers", func(c *Config) *[]string { return &c.Coordinator.Workers }),
	number("coordinator.active_runs", func(c *Config) *int { return &c.Coordinator.ActiveRuns }),
	span("coordinator.lost_after", func(c *Config) *time.Duration { return &c.Coordinator.LostAfter }),
	text("worker.listen", func(c *Config) *string { return &c.Worker.Listen }, "LOOPKEEPER_WORKER_LISTEN"),
	text("worker.ollama", func(c *Config) *string { return &c.Worker.Ollama }, "LOOPKEEPER_OLLAMA", "OLLAMA_HOST"),
	number("worker.slots", func(c *Config) *int { return &c.Worker.Slots }, "LOOPKEEPER_SLOTS", "OLLAMA_NUM_PARALLEL"),
	span("worker.heartbeat", func(c *Config) *time.Duration { return &c.Worker.Heartbeat }),
	{key: "worker.hardware.memory", get: func(c *Config) any { return c.Worker.Hardware.Memory }},
	{key: "worker.hardware.pools", get: func(c *Config) any { return c.Worker.Hardware.Pools }},
	{key: "worker.hardware.devices", get: func(c *Config) any { return c.Worker.Hardware.Devices }},
	yes("discovery.mdns", func(c *Config) *bool { return &c.Discovery.MDNS }, "LOOPKEEPER_MDNS"),
	list("discovery.interfaces", func(c *Config) *[]string { return &c.Discovery.Interfaces }),
	span("discovery.interval", func(c *Config) *time.Duration { return &c.Discovery.Interval }),
	number("models.default_context", func(c *Config) *int { return &c.Models.DefaultContext }),
	{key: "models.contexts", get: func(c *Config) any { return c.Models.Contexts }},
	{key: "models.pins", get: func(c *Config) any { return c.Models.Pins }},
	span("models.idle_unload", func(c *Config) *time.Duration { return &c.Models.IdleUnload }),
	text("models.pull", func(c *Config) *string { return &c.Models.Pull }, "LOOPKEEPER_PULL"),
	{key: "roles", get: func(c *Config) any { return c.Roles }},
	text("prompts", func(c *Config) *string { return &c.Prompts }, "LOOPKEEPER_PROMPTS"),
	{key: "nodes", get: func(c *Config) any { return c.Nodes }},
	{key: "resources", get: func(c *Config) any { return c.Resources }},
	{key: "workspaces", get: func(c *Config) any { return c.Workspaces }},
	{key: "http", get: func(c *Config) any { return c.HTTP }},
	{key: "policy", get: func(c *Config) any { return c.Policy }},
	size("script.memory_bytes", func(c *Config) *uint64 { return &c.Script.Memory }),
	span("script.cpu", func(c *Config) *time.Duration { return &c.Script.CPU }),
	amount("limits.active_seconds", func(c *Config) *int64 { return &c.Limits.ActiveSeconds }),
	amount("limits.tokens", func(c *Config) *int64 { return &c.Limits.Tokens }),
	amount("limits.calls", func(c *Config) *int64 { return &c.Limits.Calls }),
	amount("limits.artifact_bytes", func(c *Config) *int64 { return &c.Limits.ArtifactBytes }),
	amount("limits.spawn_depth", func(c *Config) *int64 { return &c.Limits.SpawnDepth }),
	amount("limits.call_seconds", func(c *Config) *int64 { return &c.Limits.CallSeconds }),
	number("limits.width", func(c *Config) *int { return &c.Limits.Width }),
	amount("limits.least_seconds", func(c *Config) *int64 { return &c.Limits.LeastSeconds }),
	amount("limits.most_seconds", func(c *Config) *int64 { return &c.Limits.MostSeconds }),
	{key: "limits.workflows", get: func(c *Config) any { return c.Limits.Workflows }},
}

func text(key string, at func(*Config) *string, env ...string) setting {
	return setting{key, env,
		func(c *Config, s string) error { *at(c) = s; return nil },
		func(c *Config) any { return *at(c) }}
}

func yes(key string, at func(*Config) *bool, env ...string) setting {
	return setting{key, env, func(c *Config, s string) (err error) {
		if *at(c), err = strconv.ParseBool(s); err != nil {
			return fmt.Errorf("want true or false, got %q", s)
		}
		return nil
	}, func(c *Config) any { return *at(c) }}
}

func number(key string, at func(*Config) *int, env ...string) setting {
	return setting{key, env, func(c *Config, s string) (err error) {
		if *at(c), err = strconv.Atoi(s); err != nil {
			return fmt.Errorf("want a whole number, got %q", s)
		}
		return nil
	}, func(c *Config) any { return *at(c) }}
}

func amount(key string, at func(*Config) *int64) setting {
	return setting{key: key, get: func(c *Config) any { return *at(c) }}
}

func size(key string, at func(*Config) *uint64) setting {
	return setting{key: key, get: func(c *Config) any { return *at(c) }}
}

func span(key string, at func(*Config) *time.Duration) setting {
	return setting{key: key, get: func(c *Config) any { return *at(c) }}
}

func list(key string, at func(*Config) *[]string) setting {
	return setting{key: key, get: func(c *Config) any { return *at(c) }}
}

var fleetID = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// validate returns the key and the fault of the first setting that cannot work.
// mostSlots is more calls at once than any Ollama runs, and as many as a coordinator believes.
const mostSlots = 1024

func validate(c *Config) (key string, err error) {
	switch {
	case !fleetID.MatchString(c.Fleet):
		return "fleet", fmt.Errorf("want 1 to 63 of a-z, 0-9 and -, not starting or ending with -, got %q", c.Fleet)
	case c.Name == "":
		return "name", fmt.Errorf("is empty")
	case c.DataDir == "":
		return "data_dir", fmt.Errorf("is empty, and this user has no home folder")
	case !strings.Contains(" debug info warn error ", " "+c.LogLevel+" "):
		return "log_level", fmt.Errorf("want debug, info, warn or error, got %q", c.LogLevel)
	case c.Coordinator.ActiveRuns < 1:
		return "coordinator.active_runs", fmt.Errorf("want at least 1, got %d", c.Coordinator.ActiveRuns)
	case c.Worker.Slots < 1:
		return "worker.slots", fmt.Errorf("want at least 1, got %d", c.Worker.Slots)
	case c.Worker.Slots > mostSlots:
		return "worker.slots", fmt.Errorf("want at most %d, got %d", mostSlots, c.Worker.Slots)
	case c.Models.DefaultContext < 256:
		return "models.default_context", fmt.Errorf("want at least 256 tokens, got %d", c.Models.DefaultContext)
	}
	for key, d := range map[string]time.Duration{"coordinator.lost_after": c.Coordinator.LostAfter, "worker.heartbeat": c.Worker.Heartbeat,
		"discovery.interval": c.Discovery.Interval, "script.cpu": c.Script.CPU} {
		if d < 100*time.Millisecond {
			return key, fmt.Errorf("want at least 100ms, got %s", d)
		}
	}
	if u, err := url.Parse(c.Worker.Ollama); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "worker.ollama", fmt.Errorf("want a URL such as http://127.0.0.1:11434, got %q", c.Worker.Ollama)
	}
	if key, err := c.Worker.Hardware.validate(); err != nil {
		return key, err
	}
	if key, err := validateWorkspaces(c); err != nil {
		return key, err
	}
	if key, err := c.HTTP.validate(); err != nil {
		return key, err
	}
	if key, err := c.Policy.validate(); err != nil {
		return key, err
	}
	if key, err := validateRoles(c); err != nil {
		return key, err
	}
	if key, err := c.Limits.validate(); err != nil {
		return key, err
	}
	return validateAddresses(c)
}

func validateAddresses(c *Config) (string, error) {
	for key, a := range map[string]string{"coordinator.listen": c.Coordinator.Listen, "worker.listen": c.Worker.Listen} {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return key, fmt.Errorf("want host:port, got %q", a)
		}
	}
	for i, a := range c.Coordinator.Workers {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Sprintf("coordinator.workers[%d]", i), fmt.Errorf("want host:port, got %q", a)
		}
	}
	return validatePlacement(c)
}
