module example.com/workbook/03-flux/exercises

go 1.26.0

ignore ./work

require example.com/workbook/shared v0.0.0

replace example.com/workbook/shared => ../../shared
