package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

func ExampleProbe() {
	root := fstest.MapFS{} // a machine without /sys
	smi := printed{Stdout: []byte("uuid, name, pci.bus_id, driver_version, memory.total [MiB], memory.free [MiB], utilization.gpu [%]," +
		" temperature.gpu, power.draw [W], addressing_mode, mig.mode.current\n" +
		"GPU-0, NVIDIA GeForce RTX 4080 SUPER, 00000000:01:00.0, 595.71.05, 16376 MiB, 15348 MiB, 0 %, 43, [N/A], HMM, [N/A]\n")}
	host := fixedHost{Hostname: "den", OS: "linux", Arch: "amd64", CPU: "AMD Ryzen 7", Cores: 16,
		TotalBytes: hwprobe.Known[uint64](67108864000), AvailableBytes: hwprobe.Known[uint64](60000000000)}
	report := Probe(context.Background(), machine(root, smi, host))
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(string(text))
	// Output:
	// {
	//   "version": 1,
	//   "host": {
	//     "hostname": "den",
	//     "os": "linux",
	//     "arch": "amd64",
	//     "cpu": "AMD Ryzen 7",
	//     "cores": 16,
	//     "total_bytes": 67108864000,
	//     "available_bytes": 60000000000
	//   },
	//   "devices": [
	//     {
	//       "id": "gpu:0000:01:00.0",
	//       "vendor": "nvidia",
	//       "name": "NVIDIA GeForce RTX 4080 SUPER",
	//       "pci": "0000:01:00.0",
	//       "uuid": "GPU-0",
	//       "integrated": false,
	//       "driver": "595.71.05",
	//       "state": "ok",
	//       "pool": "gpu:0000:01:00.0",
	//       "utilisation_percent": 0,
	//       "temperature_celsius": 43,
	//       "power_watts": null
	//     }
	//   ],
	//   "pools": [
	//     {
	//       "id": "host",
	//       "kind": "host",
	//       "total_bytes": 67108864000,
	//       "total_source": "os",
	//       "free_bytes": 60000000000,
	//       "free_source": "os"
	//     },
	//     {
	//       "id": "gpu:0000:01:00.0",
	//       "kind": "device",
	//       "total_bytes": 17171480576,
	//       "total_source": "nvidia-smi",
	//       "free_bytes": 16093544448,
	//       "free_source": "nvidia-smi"
	//     }
	//   ],
	//   "warnings": []
	// }
}
