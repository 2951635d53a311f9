module example.com/pots/kettle/test

go 1.26.0

require (
	example.com/pots/kettle v0.0.0
	example.com/pots/shared v0.0.0
)

replace (
	example.com/pots/kettle => ..
	example.com/pots/shared => ../../shared
)
