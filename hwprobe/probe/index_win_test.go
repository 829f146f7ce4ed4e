package probe

var windowsRecordings = []recording{}

var windowsNoInput = map[string]string{}

var windowsAnswers = map[string]answer{}
