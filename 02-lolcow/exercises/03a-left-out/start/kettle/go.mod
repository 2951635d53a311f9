module example.com/pots/kettle

go 1.26.0
