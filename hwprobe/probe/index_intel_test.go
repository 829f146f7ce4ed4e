package probe

var intelRecordings = []recording{}

var intelNoInput = map[string]string{}

var intelAnswers = map[string]answer{}
