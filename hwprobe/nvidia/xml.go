package nvidia

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
)

// gpu is one device of "nvidia-smi -q -x": the cells that a CSV would have, and the MIG instances that no CSV has.
type gpu struct {
	row
	instances []instance
}

// xmlGPU is what is read of a <gpu> element, by path: its MIG instances and its BAR have elements of the same names. The
// elements of DTD v9 to v13 differ; what a version does not have stays empty.
type xmlGPU struct {
	Address   string `xml:"id,attr"`
	Name      string `xml:"product_name"`
	UUID      string `xml:"uuid"`
	Bus       string `xml:"pci>pci_bus_id"`
	Mode      string `xml:"addressing_mode"`
	MIG       string `xml:"mig_mode>current_mig"`
	Total     string `xml:"fb_memory_usage>total"`
	Free      string `xml:"fb_memory_usage>free"`
	Busy      string `xml:"utilization>gpu_util"`
	Heat      string `xml:"temperature>gpu_temp"`
	Power11   string `xml:"power_readings>power_draw"`             // to v11
	Power12   string `xml:"gpu_power_readings>power_draw"`         // v12
	Average   string `xml:"gpu_power_readings>average_power_draw"` // later v12, and v13
	Instant   string `xml:"gpu_power_readings>instant_power_draw"`
	Instances []struct {
		Index string `xml:"index"`
		GI    string `xml:"gpu_instance_id"`
		CI    string `xml:"compute_instance_id"`
		Total string `xml:"fb_memory_usage>total"`
		Free  string `xml:"fb_memory_usage>free"`
	} `xml:"mig_devices>mig_device"`
}

// parseXML reads the devices of "nvidia-smi -q -x". Output that is cut short or broken gives the devices before the break.
func parseXML(output []byte) []gpu {
	decoder := xml.NewDecoder(bytes.NewReader(output))
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil } // all that is read is ASCII
	var gpus []gpu
	versions := row{cells: map[string]string{}}
	for {
		token, err := decoder.Token()
		if err != nil {
			return gpus
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch name := element.Name.Local; name {
		case "driver_version", "kmd_version":
			var text string
			if decoder.DecodeElement(&text, &element) != nil {
				return gpus
			}
			versions.cells[name] = strings.TrimSpace(text)
		case "gpu":
			var x xmlGPU
			if decoder.DecodeElement(&x, &element) != nil {
				return gpus
			}
			gpus = append(gpus, x.gpu(versions))
		}
	}
}

// gpu gives the elements the names of the CSV's fields. An element that is not there is a field that was not asked for.
func (x xmlGPU) gpu(versions row) gpu {
	power := row{cells: map[string]string{"draw": strings.TrimSpace(x.Power11)}}
	for _, later := range []string{x.Power12, x.Average, x.Instant} {
		power = power.completed(row{cells: map[string]string{"draw": strings.TrimSpace(later)}})
	}
	g := gpu{row: row{cells: map[string]string{}}}
	for field, text := range map[string]string{
		"name": x.Name, "uuid": x.UUID, "pci.bus_id": x.Bus, "addressing_mode": x.Mode, "mig.mode.current": x.MIG,
		"memory.total": x.Total, "memory.free": x.Free, "utilization.gpu": x.Busy, "temperature.gpu": x.Heat,
		"power.draw": power.cells["draw"], "driver_version": versions.cells["driver_version"], "kmd_version": versions.cells["kmd_version"],
	} {
		if text = strings.TrimSpace(text); text != "" {
			g.cells[field] = text
		}
	}
	if g.address() == "" {
		g.cells["pci.bus_id"] = strings.TrimSpace(x.Address)
	}
	for _, i := range x.Instances {
		memory := row{cells: map[string]string{"memory.total": strings.TrimSpace(i.Total), "memory.free": strings.TrimSpace(i.Free)}}
		part := instance{index: strings.TrimSpace(i.Index), gi: strings.TrimSpace(i.GI), ci: strings.TrimSpace(i.CI)}
		part.total, part.free = memory.memory()
		g.instances = append(g.instances, part)
	}
	return g
}
